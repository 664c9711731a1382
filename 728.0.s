	.file	"TVMMod"
	.text
	.globl	__tvm_ffi_tefuse_nothing
	.p2align	4
	.type	__tvm_ffi_tefuse_nothing,@function
__tvm_ffi_tefuse_nothing:
.Lfunc_begin0:
	.file	1 "." "IRModule.CodeGenLLVM"
	.loc	1 0 0
	.cfi_startproc
	pushq	%rax
	.cfi_def_cfa_offset 16
.Ltmp0:
	cmpl	$1, %edx
	jne	.LBB0_1
.Ltmp1:
	testq	%rsi, %rsi
	je	.LBB0_6
.Ltmp2:
	movl	(%rsi), %eax
.Ltmp3:
	cmpl	$63, %eax
	jle	.LBB0_8
.Ltmp4:
	cmpl	$70, %eax
	jne	.LBB0_13
.Ltmp5:
	movq	8(%rsi), %rax
.Ltmp6:
	addq	$24, %rax
.Ltmp7:
	jmp	.LBB0_14
.Ltmp8:
.LBB0_8:
	cmpl	$7, %eax
	ja	.LBB0_10
.Ltmp9:
	movl	$145, %ecx
	btl	%eax, %ecx
	jae	.LBB0_10
.Ltmp10:
.LBB0_13:
	movq	8(%rsi), %rax
.Ltmp11:
	testq	%rax, %rax
	je	.LBB0_10
.Ltmp12:
.LBB0_14:
	cmpl	$1, 16(%rax)
	jne	.LBB0_15
.Ltmp13:
	cmpw	$1, 22(%rax)
	jne	.LBB0_21
.Ltmp14:
	cmpb	$32, 21(%rax)
	jne	.LBB0_21
.Ltmp15:
	cmpb	$0, 20(%rax)
	jne	.LBB0_21
.Ltmp16:
	cmpl	$1, 8(%rax)
	jne	.LBB0_23
.Ltmp17:
	movq	(%rax), %rdi
	testq	%rdi, %rdi
	je	.LBB0_25
.Ltmp18:
	movq	24(%rax), %rcx
.Ltmp19:
	cmpl	$1, (%rcx)
	jne	.LBB0_27
.Ltmp20:
	cmpq	$0, 40(%rax)
	jne	.LBB0_29
.Ltmp21:
	callq	tefuse_nothing_compute_
.Ltmp22:
	xorl	%eax, %eax
	popq	%rcx
	.cfi_def_cfa_offset 8
	retq
.Ltmp23:
.LBB0_10:
	.cfi_def_cfa_offset 16
	leaq	.L.str.11(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.8(%rip), %rdx
.Ltmp24:
	leaq	.L.str.9(%rip), %rcx
	leaq	.L.str.4(%rip), %r8
	leaq	.L.str.5(%rip), %r9
	jmp	.LBB0_3
.Ltmp25:
.LBB0_1:
	leaq	.L.str.6(%rip), %rax
	leaq	.L.str.5(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.1(%rip), %rdx
.Ltmp26:
	leaq	.L.str.2(%rip), %rcx
	leaq	.L.str.3(%rip), %r8
	jmp	.LBB0_2
.Ltmp27:
.LBB0_6:
	subq	$16, %rsp
	.cfi_adjust_cfa_offset 16
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%xmm0, (%rsp)
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.7(%rip), %rdx
.Ltmp28:
	leaq	.L.str.4(%rip), %rcx
	leaq	.L.str.5(%rip), %r8
	leaq	.L.str.6(%rip), %r9
	movl	$4, %esi
.Ltmp29:
	jmp	.LBB0_4
.Ltmp30:
.LBB0_15:
	.cfi_def_cfa_offset 16
	leaq	.L.str.12(%rip), %rdi
	leaq	.L.str.13(%rip), %rsi
.Ltmp31:
	leaq	.L.str.14(%rip), %rdx
.Ltmp32:
	leaq	.L.str.15(%rip), %rcx
	jmp	.LBB0_16
.Ltmp33:
.LBB0_21:
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.13(%rip), %rsi
.Ltmp34:
	leaq	.L.str.14(%rip), %rdx
.Ltmp35:
	leaq	.L.str.16(%rip), %rcx
	leaq	.L.str.17(%rip), %r8
	callq	__tvm_set_raised_12
.Ltmp36:
	movl	$-1, %eax
	popq	%rcx
	.cfi_def_cfa_offset 8
	retq
.Ltmp37:
.LBB0_23:
	.cfi_def_cfa_offset 16
	leaq	.L.str.12(%rip), %rdi
	leaq	.L.str.13(%rip), %rsi
.Ltmp38:
	leaq	.L.str.14(%rip), %rdx
.Ltmp39:
	leaq	.L.str.18(%rip), %rcx
	leaq	.L.str.19(%rip), %r8
	callq	__tvm_set_raised_12
.Ltmp40:
	movl	$-1, %eax
	popq	%rcx
	.cfi_def_cfa_offset 8
	retq
.Ltmp41:
.LBB0_25:
	.cfi_def_cfa_offset 16
	leaq	.L.str.23(%rip), %rax
.Ltmp42:
	leaq	.L.str.5(%rip), %r10
	leaq	.L.str.12(%rip), %rdi
	leaq	.L.str.14(%rip), %rdx
.Ltmp43:
	leaq	.L.str.22(%rip), %rcx
	leaq	.L.str.9(%rip), %r8
.Ltmp44:
.LBB0_2:
	leaq	.L.str.4(%rip), %r9
.Ltmp45:
.LBB0_3:
	movl	$6, %esi
.Ltmp46:
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	pushq	%r10
	.cfi_adjust_cfa_offset 8
.Ltmp47:
.LBB0_4:
	callq	__tvm_set_raised_6
	addq	$16, %rsp
	.cfi_adjust_cfa_offset -16
	movl	$-1, %eax
	popq	%rcx
	.cfi_def_cfa_offset 8
	retq
.Ltmp48:
.LBB0_27:
	.cfi_def_cfa_offset 16
	leaq	.L.str.12(%rip), %rdi
	leaq	.L.str.24(%rip), %rsi
.Ltmp49:
	leaq	.L.str.25(%rip), %rdx
.Ltmp50:
	leaq	.L.str.26(%rip), %rcx
.Ltmp51:
.LBB0_16:
	leaq	.L.str.2(%rip), %r8
	callq	__tvm_set_raised_12
.Ltmp52:
	movl	$-1, %eax
	popq	%rcx
	.cfi_def_cfa_offset 8
	retq
.Ltmp53:
.LBB0_29:
	.cfi_def_cfa_offset 16
	leaq	.L.str.12(%rip), %rdi
	leaq	.L.str.24(%rip), %rsi
.Ltmp54:
	leaq	.L.str.27(%rip), %rdx
.Ltmp55:
	leaq	.L.str.26(%rip), %rcx
.Ltmp56:
	leaq	.L.str.9(%rip), %r8
	callq	__tvm_set_raised_12
.Ltmp57:
	movl	$-1, %eax
	popq	%rcx
	.cfi_def_cfa_offset 8
	retq
.Ltmp58:
.Lfunc_end0:
	.size	__tvm_ffi_tefuse_nothing, .Lfunc_end0-__tvm_ffi_tefuse_nothing
	.cfi_endproc

	.p2align	4
	.type	__tvm_set_raised_6,@function
__tvm_set_raised_6:
.Lfunc_begin1:
	.cfi_startproc
	subq	$56, %rsp
	.cfi_def_cfa_offset 64
	vmovaps	64(%rsp), %xmm0
	movl	%esi, %eax
	leaq	8(%rsp), %rsi
	movq	%rdx, 8(%rsp)
	movq	%rcx, 16(%rsp)
	movq	%r8, 24(%rsp)
	movq	%r9, 32(%rsp)
	movl	%eax, %edx
	vmovups	%xmm0, 40(%rsp)
	callq	TVMFFIErrorSetRaisedFromCStrParts@PLT
	addq	$56, %rsp
	.cfi_def_cfa_offset 8
	retq
.Lfunc_end1:
	.size	__tvm_set_raised_6, .Lfunc_end1-__tvm_set_raised_6
	.cfi_endproc

	.p2align	4
	.type	__tvm_set_raised_12,@function
__tvm_set_raised_12:
.Lfunc_begin2:
	.cfi_startproc
	subq	$104, %rsp
	.cfi_def_cfa_offset 112
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	movq	%rcx, 24(%rsp)
	leaq	.L.str.9(%rip), %rax
	leaq	.L.str.4(%rip), %rcx
	leaq	.L.str.5(%rip), %rsi
	movl	$8, %edx
	vxorps	%xmm0, %xmm0, %xmm0
	movq	%rax, 32(%rsp)
	movq	%rcx, 40(%rsp)
	movq	%rsi, 48(%rsp)
	leaq	.L.str.10(%rip), %rcx
	leaq	8(%rsp), %rsi
	movq	%rcx, 56(%rsp)
	movq	%r8, 64(%rsp)
	vmovups	%ymm0, 72(%rsp)
	vzeroupper
	callq	TVMFFIErrorSetRaisedFromCStrParts@PLT
	addq	$104, %rsp
	.cfi_def_cfa_offset 8
	retq
.Lfunc_end2:
	.size	__tvm_set_raised_12, .Lfunc_end2-__tvm_set_raised_12
	.cfi_endproc

	.p2align	4
	.type	tefuse_nothing_compute_,@function
tefuse_nothing_compute_:
.Lfunc_begin3:
	.loc	1 0 0
	.cfi_startproc
	movl	$0, (%rdi)
	retq
.Ltmp59:
.Lfunc_end3:
	.size	tefuse_nothing_compute_, .Lfunc_end3-tefuse_nothing_compute_
	.cfi_endproc

	.weak	__tvm_ffi_main
	.p2align	4
	.type	__tvm_ffi_main,@function
__tvm_ffi_main:
.Lfunc_begin4:
	.cfi_startproc
	jmp	__tvm_ffi_tefuse_nothing@PLT
.Lfunc_end4:
	.size	__tvm_ffi_main, .Lfunc_end4-__tvm_ffi_main
	.cfi_endproc

	.section	.text.tvm.fp16.conv,"ax",@progbits
	.weak	__truncsfhf2
	.p2align	4
	.type	__truncsfhf2,@function
__truncsfhf2:
.Lfunc_begin5:
	.cfi_startproc
	vmovd	%xmm0, %eax
	movl	%eax, %edx
	andl	$2147483647, %edx
	leal	-947912704(%rdx), %ecx
	leal	-1199570944(%rdx), %esi
	cmpl	%esi, %ecx
	jae	.LBB5_5
	movl	%eax, %edx
	movl	%eax, %esi
	shrl	$13, %edx
	andl	$8191, %esi
	cmpl	$4097, %esi
	jb	.LBB5_3
	addl	$-114687, %edx
	movl	%edx, %ecx
	jmp	.LBB5_13
.LBB5_5:
	cmpl	$2139095041, %edx
	jb	.LBB5_7
	movl	$2317, %ecx
	bextrl	%ecx, %eax, %ecx
	orl	$32256, %ecx
	jmp	.LBB5_13
.LBB5_3:
	leal	-114688(%rdx), %ecx
	cmpl	$4096, %esi
	jne	.LBB5_13
	andl	$1, %edx
	addl	%edx, %ecx
	jmp	.LBB5_13
.LBB5_7:
	movl	$31744, %ecx
	cmpl	$1199570943, %edx
	ja	.LBB5_13
	xorl	%ecx, %ecx
	cmpl	$754974720, %edx
	jb	.LBB5_13
	movl	%eax, %ecx
	andl	$8388607, %ecx
	shrl	$23, %edx
	xorl	%edi, %edi
	orl	$8388608, %ecx
	leal	-81(%rdx), %esi
	shlxl	%esi, %ecx, %esi
	testl	%esi, %esi
	movb	$113, %sil
	setne	%dil
	subb	%dl, %sil
	shrxl	%esi, %ecx, %edx
	movl	%edx, %ecx
	andl	$8191, %edx
	shrl	$13, %ecx
	orl	%edi, %edx
	cmpl	$4097, %edx
	jb	.LBB5_11
	incl	%ecx
	jmp	.LBB5_13
.LBB5_11:
	cmpl	$4096, %edx
	jne	.LBB5_13
	movl	%ecx, %edx
	andl	$1, %edx
	addl	%edx, %ecx
.LBB5_13:
	shrl	$16, %eax
	andl	$32768, %eax
	orl	%ecx, %eax
	vpinsrw	$0, %eax, %xmm0, %xmm0
	retq
.Lfunc_end5:
	.size	__truncsfhf2, .Lfunc_end5-__truncsfhf2
	.cfi_endproc

	.weak	__extendhfsf2
	.p2align	4
	.type	__extendhfsf2,@function
__extendhfsf2:
.Lfunc_begin6:
	.cfi_startproc
	vpextrw	$0, %xmm0, %eax
	movl	%eax, %ecx
	andl	$32767, %ecx
	leal	-1024(%rcx), %edx
	cmpw	$30719, %dx
	ja	.LBB6_2
	shll	$13, %ecx
	addl	$939524096, %ecx
	jmp	.LBB6_7
.LBB6_2:
	cmpw	$31744, %cx
	jb	.LBB6_4
	shll	$13, %ecx
	orl	$2139095040, %ecx
	jmp	.LBB6_7
.LBB6_4:
	testl	%ecx, %ecx
	je	.LBB6_5
	movl	%ecx, %edx
	shrl	$8, %edx
	xorl	%esi, %esi
	cmpw	$256, %cx
	setb	%sil
	cmovbl	%ecx, %edx
	movl	%edx, %r8d
	leal	24(,%rsi,8), %edi
	shrl	$4, %r8d
	cmpl	$16, %edx
	leal	20(,%rsi,8), %esi
	cmovbl	%edx, %r8d
	cmovbl	%edi, %esi
	movl	%r8d, %edx
	shrl	$2, %edx
	cmpl	$4, %r8d
	leal	-2(%rsi), %edi
	cmovbl	%r8d, %edx
	cmovbl	%esi, %edi
	movl	%edx, %esi
	negl	%esi
	cmpl	$2, %edx
	movl	$-2, %edx
	cmovbl	%esi, %edx
	addl	%edi, %edx
	leal	-8(%rdx), %esi
	shll	$23, %edx
	shlxl	%esi, %ecx, %esi
	movl	$1124073472, %ecx
	xorl	$8388608, %esi
	subl	%edx, %ecx
	orl	%esi, %ecx
	jmp	.LBB6_7
.LBB6_5:
	xorl	%ecx, %ecx
.LBB6_7:
	andl	$32768, %eax
	shll	$16, %eax
	orl	%ecx, %eax
	vmovd	%eax, %xmm0
	retq
.Lfunc_end6:
	.size	__extendhfsf2, .Lfunc_end6-__extendhfsf2
	.cfi_endproc

	.type	.L.str,@object
	.section	.rodata,"a",@progbits
.L.str:
	.asciz	"TypeError"
	.size	.L.str, 10

	.type	.L.str.1,@object
.L.str.1:
	.asciz	"Expected "
	.size	.L.str.1, 10

	.type	.L.str.2,@object
.L.str.2:
	.asciz	"1"
	.size	.L.str.2, 2

	.type	.L.str.3,@object
.L.str.3:
	.asciz	" arguments"
	.size	.L.str.3, 11

	.type	.L.str.4,@object
.L.str.4:
	.asciz	" when calling:\n  `"
	.size	.L.str.4, 19

	.type	.L.str.5,@object
.L.str.5:
	.asciz	"tefuse_nothing(nothing: Tensor([1], int32))"
	.size	.L.str.5, 44

	.type	.L.str.6,@object
.L.str.6:
	.asciz	"`"
	.size	.L.str.6, 2

	.type	.L.str.7,@object
.L.str.7:
	.asciz	"args pointer is NULL"
	.size	.L.str.7, 21

	.type	.L.str.8,@object
.L.str.8:
	.asciz	"Mismatched type on argument #"
	.size	.L.str.8, 30

	.type	.L.str.9,@object
.L.str.9:
	.asciz	"0"
	.size	.L.str.9, 2

	.type	.L.str.10,@object
.L.str.10:
	.asciz	"`,\n  expected "
	.size	.L.str.10, 15

	.type	.L.str.11,@object
.L.str.11:
	.asciz	"Tensor"
	.size	.L.str.11, 7

	.type	.L.str.12,@object
.L.str.12:
	.asciz	"ValueError"
	.size	.L.str.12, 11

	.type	.L.str.13,@object
.L.str.13:
	.asciz	"Mismatched "
	.size	.L.str.13, 12

	.type	.L.str.14,@object
.L.str.14:
	.asciz	"nothing"
	.size	.L.str.14, 8

	.type	.L.str.15,@object
.L.str.15:
	.asciz	".ndim on argument #"
	.size	.L.str.15, 20

	.type	.L.str.16,@object
.L.str.16:
	.asciz	".dtype on argument #"
	.size	.L.str.16, 21

	.type	.L.str.17,@object
.L.str.17:
	.asciz	"int32"
	.size	.L.str.17, 6

	.type	.L.str.18,@object
.L.str.18:
	.asciz	".device_type on argument #"
	.size	.L.str.18, 27

	.type	.L.str.19,@object
.L.str.19:
	.asciz	"cpu"
	.size	.L.str.19, 4

	.type	.L.str.22,@object
.L.str.22:
	.asciz	" data pointer is NULL on argument #"
	.size	.L.str.22, 36

	.type	.L.str.23,@object
.L.str.23:
	.asciz	"`,\n  expected non-NULL data pointer"
	.size	.L.str.23, 36

	.type	.L.str.24,@object
.L.str.24:
	.asciz	"Invalid "
	.size	.L.str.24, 9

	.type	.L.str.25,@object
.L.str.25:
	.asciz	"nothing.shape[0]"
	.size	.L.str.25, 17

	.type	.L.str.26,@object
.L.str.26:
	.asciz	" on argument #"
	.size	.L.str.26, 15

	.type	.L.str.27,@object
.L.str.27:
	.asciz	"nothing.byte_offset"
	.size	.L.str.27, 20

	.section	.debug_loc,"",@progbits
.Ldebug_loc0:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Lfunc_begin0-.Lfunc_begin0
	.quad	.Ltmp22-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp22-.Lfunc_begin0
	.quad	.Ltmp23-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp23-.Lfunc_begin0
	.quad	.Ltmp29-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp29-.Lfunc_begin0
	.quad	.Ltmp30-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp30-.Lfunc_begin0
	.quad	.Ltmp31-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp31-.Lfunc_begin0
	.quad	.Ltmp33-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp33-.Lfunc_begin0
	.quad	.Ltmp34-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp34-.Lfunc_begin0
	.quad	.Ltmp37-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp37-.Lfunc_begin0
	.quad	.Ltmp38-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp38-.Lfunc_begin0
	.quad	.Ltmp41-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp41-.Lfunc_begin0
	.quad	.Ltmp46-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp46-.Lfunc_begin0
	.quad	.Ltmp48-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp48-.Lfunc_begin0
	.quad	.Ltmp49-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp49-.Lfunc_begin0
	.quad	.Ltmp53-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp53-.Lfunc_begin0
	.quad	.Ltmp54-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp54-.Lfunc_begin0
	.quad	.Lfunc_end0-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc1:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Lfunc_begin0-.Lfunc_begin0
	.quad	.Ltmp22-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp22-.Lfunc_begin0
	.quad	.Ltmp23-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp23-.Lfunc_begin0
	.quad	.Ltmp24-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp24-.Lfunc_begin0
	.quad	.Ltmp25-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp25-.Lfunc_begin0
	.quad	.Ltmp26-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp26-.Lfunc_begin0
	.quad	.Ltmp27-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp27-.Lfunc_begin0
	.quad	.Ltmp28-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp28-.Lfunc_begin0
	.quad	.Ltmp30-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp30-.Lfunc_begin0
	.quad	.Ltmp32-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp32-.Lfunc_begin0
	.quad	.Ltmp33-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp33-.Lfunc_begin0
	.quad	.Ltmp35-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp35-.Lfunc_begin0
	.quad	.Ltmp37-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp37-.Lfunc_begin0
	.quad	.Ltmp39-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp39-.Lfunc_begin0
	.quad	.Ltmp41-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp41-.Lfunc_begin0
	.quad	.Ltmp43-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp43-.Lfunc_begin0
	.quad	.Ltmp48-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp48-.Lfunc_begin0
	.quad	.Ltmp50-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp50-.Lfunc_begin0
	.quad	.Ltmp53-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp53-.Lfunc_begin0
	.quad	.Ltmp55-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp55-.Lfunc_begin0
	.quad	.Lfunc_end0-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc2:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp3-.Lfunc_begin0
	.quad	.Ltmp6-.Lfunc_begin0
	.short	1
	.byte	80
	.quad	.Ltmp8-.Lfunc_begin0
	.quad	.Ltmp11-.Lfunc_begin0
	.short	1
	.byte	80
	.quad	0
	.quad	0
.Ldebug_loc3:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp7-.Lfunc_begin0
	.quad	.Ltmp8-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	.Ltmp11-.Lfunc_begin0
	.quad	.Ltmp22-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	.Ltmp30-.Lfunc_begin0
	.quad	.Ltmp36-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	.Ltmp37-.Lfunc_begin0
	.quad	.Ltmp40-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	.Ltmp41-.Lfunc_begin0
	.quad	.Ltmp42-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	.Ltmp48-.Lfunc_begin0
	.quad	.Ltmp52-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	.Ltmp53-.Lfunc_begin0
	.quad	.Ltmp57-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc4:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp19-.Lfunc_begin0
	.quad	.Ltmp22-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp48-.Lfunc_begin0
	.quad	.Ltmp51-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp53-.Lfunc_begin0
	.quad	.Ltmp56-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	0
	.quad	0
	.section	.debug_abbrev,"",@progbits
	.byte	1
	.byte	17
	.byte	1
	.byte	37
	.byte	14
	.byte	19
	.byte	5
	.byte	3
	.byte	14
	.byte	16
	.byte	23
	.byte	27
	.byte	14
	.ascii	"\264B"
	.byte	25
	.byte	17
	.byte	1
	.byte	85
	.byte	23
	.byte	0
	.byte	0
	.byte	2
	.byte	46
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	3
	.byte	14
	.byte	39
	.byte	25
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	3
	.byte	5
	.byte	0
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	4
	.byte	5
	.byte	0
	.byte	2
	.byte	23
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	5
	.byte	52
	.byte	0
	.byte	2
	.byte	23
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	6
	.byte	46
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	3
	.byte	14
	.byte	39
	.byte	25
	.byte	54
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	7
	.byte	5
	.byte	0
	.byte	2
	.byte	24
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	8
	.byte	52
	.byte	0
	.byte	2
	.byte	24
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	9
	.byte	36
	.byte	0
	.byte	3
	.byte	14
	.byte	62
	.byte	11
	.byte	11
	.byte	11
	.byte	0
	.byte	0
	.byte	10
	.byte	15
	.byte	0
	.byte	0
	.byte	0
	.byte	11
	.byte	15
	.byte	0
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	0
	.section	.debug_info,"",@progbits
.Lcu_begin0:
	.long	.Ldebug_info_end0-.Ldebug_info_start0
.Ldebug_info_start0:
	.short	4
	.long	.debug_abbrev
	.byte	8
	.byte	1
	.long	.Linfo_string0
	.short	2
	.long	.Linfo_string1
	.long	.Lline_table_start0
	.long	.Linfo_string2

	.quad	0
	.long	.Ldebug_ranges0
	.byte	2
	.quad	.Lfunc_begin0
	.long	.Lfunc_end0-.Lfunc_begin0
	.byte	4
	.byte	156
	.byte	17
	.byte	112
	.byte	34
	.long	.Linfo_string3

	.long	200
	.byte	3
	.long	.Linfo_string12
	.long	207
	.byte	4
	.long	.Ldebug_loc0
	.long	.Linfo_string6
	.long	207
	.byte	4
	.long	.Ldebug_loc1
	.long	.Linfo_string7
	.long	200
	.byte	3
	.long	.Linfo_string13
	.long	207
	.byte	5
	.long	.Ldebug_loc2
	.long	.Linfo_string8
	.long	200
	.byte	5
	.long	.Ldebug_loc3
	.long	.Linfo_string9
	.long	207
	.byte	5
	.long	.Ldebug_loc4
	.long	.Linfo_string10
	.long	208
	.byte	0
	.byte	6
	.quad	.Lfunc_begin3
	.long	.Lfunc_end3-.Lfunc_begin3
	.byte	1
	.byte	87
	.long	.Linfo_string5

	.byte	3
	.long	200
	.byte	7
	.byte	1
	.byte	85
	.long	.Linfo_string14
	.long	220
	.byte	8
	.byte	2
	.byte	117
	.byte	0
	.long	.Linfo_string14
	.long	220
	.byte	0
	.byte	9
	.long	.Linfo_string4
	.byte	5
	.byte	4
	.byte	10
	.byte	11
	.long	213
	.byte	9
	.long	.Linfo_string11
	.byte	5
	.byte	8
	.byte	11
	.long	200
	.byte	0
.Ldebug_info_end0:
	.section	.debug_ranges,"",@progbits
.Ldebug_ranges0:
	.quad	.Lfunc_begin0
	.quad	.Lfunc_end0
	.quad	.Lfunc_begin3
	.quad	.Lfunc_end3
	.quad	0
	.quad	0
	.section	.debug_str,"MS",@progbits,1
.Linfo_string0:
	.asciz	"TVM"
.Linfo_string1:
	.asciz	"IRModule.CodeGenLLVM"
.Linfo_string2:
	.asciz	"."
.Linfo_string3:
	.asciz	"__tvm_ffi_tefuse_nothing"
.Linfo_string4:
	.asciz	"int32"
.Linfo_string5:
	.asciz	"tefuse_nothing_compute_"
.Linfo_string6:
	.asciz	"args"
.Linfo_string7:
	.asciz	"num_args"
.Linfo_string8:
	.asciz	"nothing.type_index"
.Linfo_string9:
	.asciz	"nothing.handle"
.Linfo_string10:
	.asciz	"tefuse_nothing.nothing_shape"
.Linfo_string11:
	.asciz	"int64"
.Linfo_string12:
	.asciz	"self_handle"
.Linfo_string13:
	.asciz	"result"
.Linfo_string14:
	.asciz	"nothing"
	.section	.debug_pubnames,"",@progbits
	.long	.LpubNames_end0-.LpubNames_start0
.LpubNames_start0:
	.short	2
	.long	.Lcu_begin0
	.long	226
	.long	42
	.asciz	"__tvm_ffi_tefuse_nothing"
	.long	152
	.asciz	"tefuse_nothing_compute_"
	.long	0
.LpubNames_end0:
	.section	.debug_pubtypes,"",@progbits
	.long	.LpubTypes_end0-.LpubTypes_start0
.LpubTypes_start0:
	.short	2
	.long	.Lcu_begin0
	.long	226
	.long	200
	.asciz	"int32"
	.long	213
	.asciz	"int64"
	.long	0
.LpubTypes_end0:
	.section	".note.GNU-stack","",@progbits
	.section	.debug_line,"",@progbits
.Lline_table_start0:
