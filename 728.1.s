	.file	"TVMMod"
	.section	.rodata.cst16,"aM",@progbits,16
	.p2align	4, 0x0
.LCPI0_0:
	.quad	7
	.quad	1
.LCPI0_3:
	.quad	11648
	.quad	16
	.section	.rodata.cst32,"aM",@progbits,32
	.p2align	5, 0x0
.LCPI0_1:
	.quad	0
	.quad	2
	.quad	3
	.quad	4
.LCPI0_2:
	.quad	144
	.quad	48
	.quad	16
	.quad	1
	.text
	.globl	__tvm_ffi_fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7
	.p2align	4
	.type	__tvm_ffi_fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7,@function
__tvm_ffi_fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7:
.Lfunc_begin0:
	.file	1 "." "IRModule.CodeGenLLVM"
	.loc	1 0 0
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	pushq	%r15
	.cfi_def_cfa_offset 24
	pushq	%r14
	.cfi_def_cfa_offset 32
	pushq	%r12
	.cfi_def_cfa_offset 40
	pushq	%rbx
	.cfi_def_cfa_offset 48
	.cfi_offset %rbx, -48
	.cfi_offset %r12, -40
	.cfi_offset %r14, -32
	.cfi_offset %r15, -24
	.cfi_offset %rbp, -16
	cmpl	$4, %edx
	jne	.LBB0_96
.Ltmp0:
	testq	%rsi, %rsi
	je	.LBB0_97
.Ltmp1:
	movl	(%rsi), %eax
.Ltmp2:
	cmpl	$63, %eax
	jle	.LBB0_7
.Ltmp3:
	cmpl	$70, %eax
	jne	.LBB0_9
.Ltmp4:
	movq	8(%rsi), %rax
.Ltmp5:
	addq	$24, %rax
.Ltmp6:
	movl	16(%rsi), %ecx
.Ltmp7:
	cmpl	$63, %ecx
	jg	.LBB0_10
.Ltmp8:
.LBB0_5:
	cmpl	$7, %ecx
	ja	.LBB0_92
.Ltmp9:
	movl	$145, %edx
.Ltmp10:
	btl	%ecx, %edx
	jb	.LBB0_14
	jmp	.LBB0_92
.Ltmp11:
.LBB0_7:
	cmpl	$7, %eax
	ja	.LBB0_91
.Ltmp12:
	movl	$145, %ecx
	btl	%eax, %ecx
	jae	.LBB0_91
.Ltmp13:
.LBB0_9:
	movq	8(%rsi), %rax
.Ltmp14:
	movl	16(%rsi), %ecx
	cmpl	$63, %ecx
	jle	.LBB0_5
.Ltmp15:
.LBB0_10:
	cmpl	$70, %ecx
	jne	.LBB0_14
.Ltmp16:
	movq	24(%rsi), %r9
	addq	$24, %r9
.Ltmp17:
	movl	32(%rsi), %ecx
.Ltmp18:
	cmpl	$63, %ecx
	jg	.LBB0_15
.Ltmp19:
.LBB0_12:
	cmpl	$7, %ecx
	ja	.LBB0_93
.Ltmp20:
	movl	$145, %edx
	btl	%ecx, %edx
	jb	.LBB0_19
	jmp	.LBB0_93
.Ltmp21:
.LBB0_14:
	movq	24(%rsi), %r9
.Ltmp22:
	movl	32(%rsi), %ecx
	cmpl	$63, %ecx
	jle	.LBB0_12
.Ltmp23:
.LBB0_15:
	cmpl	$70, %ecx
	jne	.LBB0_19
.Ltmp24:
	movq	40(%rsi), %r10
	addq	$24, %r10
.Ltmp25:
	movl	48(%rsi), %ecx
.Ltmp26:
	cmpl	$63, %ecx
	jg	.LBB0_20
.Ltmp27:
.LBB0_17:
	cmpl	$7, %ecx
	ja	.LBB0_94
.Ltmp28:
	movl	$145, %edx
	btl	%ecx, %edx
	jb	.LBB0_22
	jmp	.LBB0_94
.Ltmp29:
.LBB0_19:
	movq	40(%rsi), %r10
.Ltmp30:
	movl	48(%rsi), %ecx
	cmpl	$63, %ecx
	jle	.LBB0_17
.Ltmp31:
.LBB0_20:
	cmpl	$70, %ecx
	jne	.LBB0_22
.Ltmp32:
	movq	56(%rsi), %r11
	addq	$24, %r11
	jmp	.LBB0_23
.Ltmp33:
.LBB0_22:
	movq	56(%rsi), %r11
.Ltmp34:
.LBB0_23:
	testq	%rax, %rax
	je	.LBB0_91
.Ltmp35:
	cmpl	$4, 16(%rax)
	jne	.LBB0_98
.Ltmp36:
	cmpw	$1, 22(%rax)
	jne	.LBB0_99
.Ltmp37:
	cmpb	$32, 21(%rax)
	jne	.LBB0_99
.Ltmp38:
	cmpb	$2, 20(%rax)
	jne	.LBB0_99
.Ltmp39:
	cmpl	$1, 8(%rax)
	jne	.LBB0_100
.Ltmp40:
	testq	%r9, %r9
	je	.LBB0_92
.Ltmp41:
	cmpl	$5, 16(%r9)
	jne	.LBB0_101
.Ltmp42:
	cmpw	$1, 22(%r9)
	jne	.LBB0_102
.Ltmp43:
	cmpb	$32, 21(%r9)
	jne	.LBB0_102
.Ltmp44:
	cmpb	$2, 20(%r9)
	jne	.LBB0_102
.Ltmp45:
	cmpl	$1, 8(%r9)
	jne	.LBB0_103
.Ltmp46:
	testq	%r10, %r10
	je	.LBB0_93
.Ltmp47:
	cmpl	$5, 16(%r10)
	jne	.LBB0_104
.Ltmp48:
	cmpw	$1, 22(%r10)
	jne	.LBB0_105
.Ltmp49:
	cmpb	$32, 21(%r10)
	jne	.LBB0_105
.Ltmp50:
	cmpb	$2, 20(%r10)
	jne	.LBB0_105
.Ltmp51:
	cmpl	$1, 8(%r10)
	jne	.LBB0_106
.Ltmp52:
	testq	%r11, %r11
	je	.LBB0_94
.Ltmp53:
	cmpl	$4, 16(%r11)
	jne	.LBB0_107
.Ltmp54:
	cmpw	$1, 22(%r11)
	jne	.LBB0_108
.Ltmp55:
	cmpb	$32, 21(%r11)
	jne	.LBB0_108
.Ltmp56:
	cmpb	$2, 20(%r11)
	jne	.LBB0_108
.Ltmp57:
	cmpl	$1, 8(%r11)
	jne	.LBB0_109
.Ltmp58:
	movq	24(%rax), %r12
.Ltmp59:
	movq	32(%rax), %rsi
.Ltmp60:
	movl	12(%rax), %edi
.Ltmp61:
	movq	24(%r9), %r15
.Ltmp62:
	movq	32(%r9), %rdx
.Ltmp63:
	movq	24(%r10), %r14
.Ltmp64:
	movq	32(%r10), %rcx
.Ltmp65:
	movq	24(%r11), %rbx
.Ltmp66:
	movq	32(%r11), %r8
.Ltmp67:
	testq	%rsi, %rsi
	je	.LBB0_51
.Ltmp68:
	cmpl	$49, 8(%rsi)
	jne	.LBB0_111
.Ltmp69:
	vpxor	%xmm0, %xmm0, %xmm0
	vpblendd	$5, 16(%rsi), %xmm0, %xmm0
	vpcmpeqq	.LCPI0_0(%rip), %xmm0, %k0
	kmovd	%k0, %esi
.Ltmp70:
	testb	$1, %sil
	je	.LBB0_111
.Ltmp71:
	kshiftrb	$1, %k0, %k0
	kmovd	%k0, %esi
	testb	$1, %sil
	je	.LBB0_111
.Ltmp72:
.LBB0_51:
	movq	(%rax), %rsi
	testq	%rsi, %rsi
	je	.LBB0_110
.Ltmp73:
	testq	%rdx, %rdx
	je	.LBB0_54
.Ltmp74:
	movb	$29, %bpl
	vmovdqa	.LCPI0_1(%rip), %ymm0
	kmovd	%ebp, %k1
	vmovdqu64	(%rdx), %zmm1 {%k1} {z}
	vpermq	%zmm1, %zmm0, %zmm0
	vpxor	%xmm1, %xmm1, %xmm1
	vpblendd	$170, %ymm1, %ymm0, %ymm0
	vpxor	.LCPI0_2(%rip), %ymm0, %ymm0
	vptest	%ymm0, %ymm0
	jne	.LBB0_112
.Ltmp75:
.LBB0_54:
	cmpl	12(%r9), %edi
	jne	.LBB0_113
.Ltmp76:
	movq	(%r9), %rdx
.Ltmp77:
	testq	%rdx, %rdx
	je	.LBB0_114
.Ltmp78:
	testq	%rcx, %rcx
	je	.LBB0_60
.Ltmp79:
	vpxor	%xmm0, %xmm0, %xmm0
	vpblendd	$5, (%rcx), %xmm0, %xmm0
	vpcmpeqq	.LCPI0_3(%rip), %xmm0, %k0
	kmovd	%k0, %ebp
	testb	$1, %bpl
	je	.LBB0_116
.Ltmp80:
	kshiftrb	$1, %k0, %k0
	kmovd	%k0, %ebp
	testb	$1, %bpl
	je	.LBB0_116
.Ltmp81:
	movl	32(%rcx), %ecx
.Ltmp82:
	cmpl	$1, %ecx
	jne	.LBB0_116
.Ltmp83:
.LBB0_60:
	cmpl	12(%r10), %edi
	jne	.LBB0_115
.Ltmp84:
	movq	(%r10), %rcx
	testq	%rcx, %rcx
	je	.LBB0_117
.Ltmp85:
	testq	%r8, %r8
	je	.LBB0_66
.Ltmp86:
	cmpl	$49, 8(%r8)
	jne	.LBB0_119
.Ltmp87:
	vpxor	%xmm0, %xmm0, %xmm0
	vpblendd	$5, 16(%r8), %xmm0, %xmm0
	vpcmpeqq	.LCPI0_0(%rip), %xmm0, %k0
	kmovd	%k0, %r8d
.Ltmp88:
	testb	$1, %r8b
	je	.LBB0_119
.Ltmp89:
	kshiftrb	$1, %k0, %k0
	kmovd	%k0, %r8d
	testb	$1, %r8b
	je	.LBB0_119
.Ltmp90:
.LBB0_66:
	cmpl	12(%r11), %edi
	jne	.LBB0_118
.Ltmp91:
	movq	(%r11), %r8
	testq	%r8, %r8
	je	.LBB0_121
.Ltmp92:
	cmpl	$1, (%r12)
	jne	.LBB0_124
.Ltmp93:
	cmpl	$728, 8(%r12)
	jne	.LBB0_125
.Ltmp94:
	cmpl	$7, 16(%r12)
	jne	.LBB0_126
.Ltmp95:
	cmpl	$7, 24(%r12)
	jne	.LBB0_127
.Ltmp96:
	cmpq	$0, 40(%rax)
	jne	.LBB0_129
.Ltmp97:
	cmpl	$46, (%r15)
	jne	.LBB0_130
.Ltmp98:
	cmpl	$1, 8(%r15)
	jne	.LBB0_131
.Ltmp99:
	cmpl	$3, 16(%r15)
	jne	.LBB0_134
.Ltmp100:
	cmpl	$3, 24(%r15)
	jne	.LBB0_135
.Ltmp101:
	cmpl	$16, 32(%r15)
	jne	.LBB0_136
.Ltmp102:
	cmpq	$0, 40(%r9)
	jne	.LBB0_137
.Ltmp103:
	cmpl	$46, (%r14)
	jne	.LBB0_140
.Ltmp104:
	cmpl	$728, 8(%r14)
	jne	.LBB0_141
.Ltmp105:
	cmpl	$1, 16(%r14)
	jne	.LBB0_142
.Ltmp106:
	cmpl	$1, 24(%r14)
	jne	.LBB0_143
.Ltmp107:
	cmpl	$16, 32(%r14)
	jne	.LBB0_144
.Ltmp108:
	cmpq	$0, 40(%r10)
	jne	.LBB0_145
.Ltmp109:
	cmpl	$1, (%rbx)
	jne	.LBB0_147
.Ltmp110:
	cmpl	$728, 8(%rbx)
	jne	.LBB0_148
.Ltmp111:
	cmpl	$7, 16(%rbx)
	jne	.LBB0_149
.Ltmp112:
	cmpl	$7, 24(%rbx)
	jne	.LBB0_150
.Ltmp113:
	cmpq	$0, 40(%r11)
	jne	.LBB0_151
.Ltmp114:
	popq	%rbx
.Ltmp115:
	.cfi_def_cfa_offset 40
	popq	%r12
.Ltmp116:
	.cfi_def_cfa_offset 32
	popq	%r14
.Ltmp117:
	.cfi_def_cfa_offset 24
	popq	%r15
.Ltmp118:
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	vzeroupper
	jmp	fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7_compute_
.Ltmp119:
.LBB0_91:
	.cfi_def_cfa_offset 48
	leaq	.L.str.11(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.8(%rip), %rdx
	leaq	.L.str.9(%rip), %rcx
	jmp	.LBB0_95
.Ltmp120:
.LBB0_92:
	leaq	.L.str.11(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.8(%rip), %rdx
	leaq	.L.str.12(%rip), %rcx
	jmp	.LBB0_95
.Ltmp121:
.LBB0_93:
	leaq	.L.str.11(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.8(%rip), %rdx
	leaq	.L.str.13(%rip), %rcx
	jmp	.LBB0_95
.Ltmp122:
.LBB0_94:
	leaq	.L.str.11(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.8(%rip), %rdx
	leaq	.L.str.14(%rip), %rcx
.Ltmp123:
.LBB0_95:
	leaq	.L.str.4(%rip), %r8
	leaq	.L.str.5(%rip), %r9
	jmp	.LBB0_123
.Ltmp124:
.LBB0_96:
	leaq	.L.str.6(%rip), %rax
	leaq	.L.str.5(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.1(%rip), %rdx
.Ltmp125:
	leaq	.L.str.2(%rip), %rcx
	leaq	.L.str.3(%rip), %r8
	jmp	.LBB0_122
.Ltmp126:
.LBB0_97:
	subq	$16, %rsp
	.cfi_adjust_cfa_offset 16
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.7(%rip), %rdx
.Ltmp127:
	leaq	.L.str.4(%rip), %rcx
	leaq	.L.str.5(%rip), %r8
	leaq	.L.str.6(%rip), %r9
	movl	$4, %esi
.Ltmp128:
	vpxor	%xmm0, %xmm0, %xmm0
	vmovdqu	%xmm0, (%rsp)
	callq	__tvm_set_raised_6
	jmp	.LBB0_156
.Ltmp129:
.LBB0_98:
	.cfi_def_cfa_offset 48
	leaq	.L.str.2(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.17(%rip), %rcx
	leaq	.L.str.18(%rip), %r8
	leaq	.L.str.9(%rip), %r9
	jmp	.LBB0_154
.Ltmp130:
.LBB0_99:
	leaq	.L.str.20(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.17(%rip), %rcx
	leaq	.L.str.19(%rip), %r8
	leaq	.L.str.9(%rip), %r9
	jmp	.LBB0_154
.Ltmp131:
.LBB0_100:
	leaq	.L.str.22(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.17(%rip), %rcx
	leaq	.L.str.21(%rip), %r8
	leaq	.L.str.9(%rip), %r9
	jmp	.LBB0_154
.Ltmp132:
.LBB0_101:
	leaq	.L.str.24(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.23(%rip), %rcx
	leaq	.L.str.18(%rip), %r8
	jmp	.LBB0_139
.Ltmp133:
.LBB0_102:
	leaq	.L.str.20(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.23(%rip), %rcx
	leaq	.L.str.19(%rip), %r8
	jmp	.LBB0_139
.Ltmp134:
.LBB0_103:
	leaq	.L.str.22(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.23(%rip), %rcx
	leaq	.L.str.21(%rip), %r8
	jmp	.LBB0_139
.Ltmp135:
.LBB0_104:
	leaq	.L.str.24(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.25(%rip), %rcx
	leaq	.L.str.18(%rip), %r8
	leaq	.L.str.13(%rip), %r9
	jmp	.LBB0_154
.Ltmp136:
.LBB0_105:
	leaq	.L.str.20(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.25(%rip), %rcx
	leaq	.L.str.19(%rip), %r8
	leaq	.L.str.13(%rip), %r9
	jmp	.LBB0_154
.Ltmp137:
.LBB0_106:
	leaq	.L.str.22(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.25(%rip), %rcx
	leaq	.L.str.21(%rip), %r8
	leaq	.L.str.13(%rip), %r9
	jmp	.LBB0_154
.Ltmp138:
.LBB0_107:
	leaq	.L.str.2(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.26(%rip), %rcx
	leaq	.L.str.18(%rip), %r8
	jmp	.LBB0_153
.Ltmp139:
.LBB0_108:
	leaq	.L.str.20(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.26(%rip), %rcx
	leaq	.L.str.19(%rip), %r8
	jmp	.LBB0_153
.Ltmp140:
.LBB0_109:
	leaq	.L.str.22(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.26(%rip), %rcx
	leaq	.L.str.21(%rip), %r8
	jmp	.LBB0_153
.Ltmp141:
.LBB0_110:
	leaq	.L.str.30(%rip), %rax
	leaq	.L.str.5(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp142:
	leaq	.L.str.17(%rip), %rdx
.Ltmp143:
	leaq	.L.str.29(%rip), %rcx
.Ltmp144:
	leaq	.L.str.9(%rip), %r8
.Ltmp145:
	jmp	.LBB0_122
.Ltmp146:
.LBB0_111:
	leaq	.L.str.28(%rip), %rax
	leaq	.L.str.15(%rip), %rdi
.Ltmp147:
	leaq	.L.str.16(%rip), %rdx
.Ltmp148:
	leaq	.L.str.17(%rip), %rcx
.Ltmp149:
	leaq	.L.str.27(%rip), %r8
.Ltmp150:
	leaq	.L.str.9(%rip), %r9
	jmp	.LBB0_120
.Ltmp151:
.LBB0_112:
	leaq	.L.str.28(%rip), %rax
	leaq	.L.str.15(%rip), %rdi
.Ltmp152:
	leaq	.L.str.16(%rip), %rdx
.Ltmp153:
	leaq	.L.str.23(%rip), %rcx
.Ltmp154:
	leaq	.L.str.27(%rip), %r8
.Ltmp155:
	leaq	.L.str.12(%rip), %r9
	jmp	.LBB0_120
.Ltmp156:
.LBB0_113:
	leaq	.L.str.34(%rip), %rax
	leaq	.L.str.33(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp157:
	leaq	.L.str.16(%rip), %rdx
.Ltmp158:
	leaq	.L.str.31(%rip), %rcx
.Ltmp159:
	jmp	.LBB0_138
.Ltmp160:
.LBB0_114:
	leaq	.L.str.30(%rip), %rax
	leaq	.L.str.5(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp161:
	leaq	.L.str.23(%rip), %rdx
	leaq	.L.str.29(%rip), %rcx
.Ltmp162:
	leaq	.L.str.12(%rip), %r8
.Ltmp163:
	jmp	.LBB0_122
.Ltmp164:
.LBB0_115:
	leaq	.L.str.34(%rip), %rax
	leaq	.L.str.33(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp165:
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.35(%rip), %rcx
	jmp	.LBB0_146
.Ltmp166:
.LBB0_116:
	leaq	.L.str.28(%rip), %rax
	leaq	.L.str.15(%rip), %rdi
.Ltmp167:
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.25(%rip), %rcx
	leaq	.L.str.27(%rip), %r8
.Ltmp168:
	leaq	.L.str.13(%rip), %r9
	jmp	.LBB0_120
.Ltmp169:
.LBB0_117:
	leaq	.L.str.30(%rip), %rax
	leaq	.L.str.5(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp170:
	leaq	.L.str.25(%rip), %rdx
	leaq	.L.str.29(%rip), %rcx
	leaq	.L.str.13(%rip), %r8
.Ltmp171:
	jmp	.LBB0_122
.Ltmp172:
.LBB0_118:
	leaq	.L.str.34(%rip), %rax
	leaq	.L.str.33(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp173:
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.36(%rip), %rcx
	jmp	.LBB0_152
.Ltmp174:
.LBB0_119:
	leaq	.L.str.28(%rip), %rax
	leaq	.L.str.15(%rip), %rdi
.Ltmp175:
	leaq	.L.str.16(%rip), %rdx
	leaq	.L.str.26(%rip), %rcx
	leaq	.L.str.27(%rip), %r8
	leaq	.L.str.14(%rip), %r9
.Ltmp176:
.LBB0_120:
	movl	$7, %esi
	pushq	$0
	.cfi_adjust_cfa_offset 8
	jmp	.LBB0_133
.Ltmp177:
.LBB0_121:
	.cfi_def_cfa_offset 48
	leaq	.L.str.30(%rip), %rax
	leaq	.L.str.5(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp178:
	leaq	.L.str.26(%rip), %rdx
	leaq	.L.str.29(%rip), %rcx
	leaq	.L.str.14(%rip), %r8
.Ltmp179:
.LBB0_122:
	leaq	.L.str.4(%rip), %r9
.Ltmp180:
.LBB0_123:
	movl	$6, %esi
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	pushq	%r10
	.cfi_adjust_cfa_offset 8
	vzeroupper
	callq	__tvm_set_raised_6
	jmp	.LBB0_156
.Ltmp181:
.LBB0_124:
	.cfi_def_cfa_offset 48
	leaq	.L.str.12(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp182:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.38(%rip), %rcx
	jmp	.LBB0_128
.Ltmp183:
.LBB0_125:
	leaq	.L.str.40(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp184:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.39(%rip), %rcx
	jmp	.LBB0_128
.Ltmp185:
.LBB0_126:
	leaq	.L.str.42(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp186:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.41(%rip), %rcx
	jmp	.LBB0_128
.Ltmp187:
.LBB0_127:
	leaq	.L.str.42(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp188:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.43(%rip), %rcx
.Ltmp189:
.LBB0_128:
	leaq	.L.str.32(%rip), %r8
	leaq	.L.str.9(%rip), %r9
	jmp	.LBB0_154
.Ltmp190:
.LBB0_129:
	leaq	.L.str.9(%rip), %r9
	leaq	.L.str.10(%rip), %rax
	leaq	.L.str.15(%rip), %rdi
.Ltmp191:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.44(%rip), %rcx
	jmp	.LBB0_132
.Ltmp192:
.LBB0_130:
	leaq	.L.str.46(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp193:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.45(%rip), %rcx
	jmp	.LBB0_138
.Ltmp194:
.LBB0_131:
	leaq	.L.str.12(%rip), %r9
	leaq	.L.str.10(%rip), %rax
	leaq	.L.str.15(%rip), %rdi
.Ltmp195:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.47(%rip), %rcx
.Ltmp196:
.LBB0_132:
	leaq	.L.str.32(%rip), %r8
	movl	$8, %esi
	pushq	%r9
	.cfi_adjust_cfa_offset 8
.Ltmp197:
.LBB0_133:
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	jmp	.LBB0_155
.Ltmp198:
.LBB0_134:
	.cfi_def_cfa_offset 48
	leaq	.L.str.14(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp199:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.48(%rip), %rcx
	jmp	.LBB0_138
.Ltmp200:
.LBB0_135:
	leaq	.L.str.14(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp201:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.49(%rip), %rcx
	jmp	.LBB0_138
.Ltmp202:
.LBB0_136:
	leaq	.L.str.51(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp203:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.50(%rip), %rcx
	jmp	.LBB0_138
.Ltmp204:
.LBB0_137:
	leaq	.L.str.9(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp205:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.52(%rip), %rcx
.Ltmp206:
.LBB0_138:
	leaq	.L.str.32(%rip), %r8
.Ltmp207:
.LBB0_139:
	leaq	.L.str.12(%rip), %r9
	jmp	.LBB0_154
.Ltmp208:
.LBB0_140:
	leaq	.L.str.46(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp209:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.53(%rip), %rcx
	jmp	.LBB0_146
.Ltmp210:
.LBB0_141:
	leaq	.L.str.40(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp211:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.54(%rip), %rcx
	jmp	.LBB0_146
.Ltmp212:
.LBB0_142:
	leaq	.L.str.12(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp213:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.55(%rip), %rcx
	jmp	.LBB0_146
.Ltmp214:
.LBB0_143:
	leaq	.L.str.12(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp215:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.56(%rip), %rcx
	jmp	.LBB0_146
.Ltmp216:
.LBB0_144:
	leaq	.L.str.51(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp217:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.57(%rip), %rcx
	jmp	.LBB0_146
.Ltmp218:
.LBB0_145:
	leaq	.L.str.9(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp219:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.58(%rip), %rcx
.Ltmp220:
.LBB0_146:
	leaq	.L.str.32(%rip), %r8
	leaq	.L.str.13(%rip), %r9
	jmp	.LBB0_154
.Ltmp221:
.LBB0_147:
	leaq	.L.str.12(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp222:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.59(%rip), %rcx
	jmp	.LBB0_152
.Ltmp223:
.LBB0_148:
	leaq	.L.str.40(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp224:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.60(%rip), %rcx
	jmp	.LBB0_152
.Ltmp225:
.LBB0_149:
	leaq	.L.str.42(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp226:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.61(%rip), %rcx
	jmp	.LBB0_152
.Ltmp227:
.LBB0_150:
	leaq	.L.str.42(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp228:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.62(%rip), %rcx
	jmp	.LBB0_152
.Ltmp229:
.LBB0_151:
	leaq	.L.str.9(%rip), %rax
	leaq	.L.str.10(%rip), %r10
	leaq	.L.str.15(%rip), %rdi
.Ltmp230:
	leaq	.L.str.37(%rip), %rdx
	leaq	.L.str.63(%rip), %rcx
.Ltmp231:
.LBB0_152:
	leaq	.L.str.32(%rip), %r8
.Ltmp232:
.LBB0_153:
	leaq	.L.str.14(%rip), %r9
.Ltmp233:
.LBB0_154:
	movl	$8, %esi
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	pushq	%r10
	.cfi_adjust_cfa_offset 8
.Ltmp234:
.LBB0_155:
	vzeroupper
	callq	__tvm_set_raised_12
.Ltmp235:
.LBB0_156:
	addq	$16, %rsp
	.cfi_adjust_cfa_offset -16
	movl	$-1, %eax
	popq	%rbx
	.cfi_def_cfa_offset 40
	popq	%r12
	.cfi_def_cfa_offset 32
	popq	%r14
	.cfi_def_cfa_offset 24
	popq	%r15
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	retq
.Ltmp236:
.Lfunc_end0:
	.size	__tvm_ffi_fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7, .Lfunc_end0-__tvm_ffi_fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7
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
	vmovaps	112(%rsp), %xmm0
	movq	%rdx, 8(%rsp)
	movq	%rcx, 16(%rsp)
	leaq	.L.str.4(%rip), %rcx
	movl	%esi, %eax
	movq	%r8, 24(%rsp)
	movq	%r9, 32(%rsp)
	leaq	8(%rsp), %rsi
	movl	%eax, %edx
	movq	%rcx, 40(%rsp)
	leaq	.L.str.5(%rip), %rcx
	movq	%rcx, 48(%rsp)
	vmovups	%xmm0, 56(%rsp)
	vxorps	%xmm0, %xmm0, %xmm0
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
	.type	fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7_compute_,@function
fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7_compute_:
.Lfunc_begin3:
	.loc	1 0 0
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	pushq	%r15
	.cfi_def_cfa_offset 24
	pushq	%r14
	.cfi_def_cfa_offset 32
	pushq	%r13
	.cfi_def_cfa_offset 40
	pushq	%r12
	.cfi_def_cfa_offset 48
	pushq	%rbx
	.cfi_def_cfa_offset 56
	subq	$104, %rsp
	.cfi_def_cfa_offset 160
	.cfi_offset %rbx, -56
	.cfi_offset %r12, -48
	.cfi_offset %r13, -40
	.cfi_offset %r14, -32
	.cfi_offset %r15, -24
	.cfi_offset %rbp, -16
.Ltmp237:
	movq	__TVMBackendAllocWorkspace@GOTPCREL(%rip), %r12
	movq	%r8, %r15
.Ltmp238:
	movq	%rcx, %r13
.Ltmp239:
	movq	%rdx, %rbp
.Ltmp240:
	movl	%edi, %ebx
.Ltmp241:
	movl	$1009792, %edx
	movl	$1, %edi
	movl	$2, %ecx
	movl	$32, %r8d
	movq	%rsi, %r14
.Ltmp242:
	movl	%ebx, %esi
	callq	*(%r12)
.Ltmp243:
	movq	%rax, %rcx
	movl	$-1, %eax
.Ltmp244:
	testq	%rcx, %rcx
	jne	.LBB3_1
.Ltmp245:
.LBB3_10:
	addq	$104, %rsp
	.cfi_def_cfa_offset 56
	popq	%rbx
.Ltmp246:
	.cfi_def_cfa_offset 48
	popq	%r12
	.cfi_def_cfa_offset 40
	popq	%r13
.Ltmp247:
	.cfi_def_cfa_offset 32
	popq	%r14
	.cfi_def_cfa_offset 24
	popq	%r15
.Ltmp248:
	.cfi_def_cfa_offset 16
	popq	%rbp
.Ltmp249:
	.cfi_def_cfa_offset 8
	retq
.Ltmp250:
.LBB3_1:
	.cfi_def_cfa_offset 160
	movq	%rcx, (%rsp)
.Ltmp251:
	movl	$144256, %edx
	movl	$1, %edi
	movl	$2, %ecx
	movl	$32, %r8d
	movl	%ebx, %esi
	callq	*(%r12)
.Ltmp252:
	testq	%rax, %rax
	jne	.LBB3_3
.Ltmp253:
	movl	$-1, %eax
.Ltmp254:
	jmp	.LBB3_10
.Ltmp255:
.LBB3_3:
	movq	%rax, %r12
.Ltmp256:
	movq	(%rsp), %rax
	leaq	.L__tvm_parallel_lambda(%rip), %rdi
	leaq	8(%rsp), %rsi
	xorl	%edx, %edx
	movq	%rax, 8(%rsp)
	movq	%r14, 16(%rsp)
	movq	__TVMBackendParallelLaunch@GOTPCREL(%rip), %r14
.Ltmp257:
	callq	*(%r14)
	testl	%eax, %eax
	jne	.LBB3_10
.Ltmp258:
	movq	(%rsp), %rax
	leaq	.L__tvm_parallel_lambda.64(%rip), %rdi
	leaq	56(%rsp), %rsi
	xorl	%edx, %edx
	movq	%rax, 56(%rsp)
	movq	%rbp, 64(%rsp)
	movq	%r12, 72(%rsp)
	callq	*(%r14)
	testl	%eax, %eax
	jne	.LBB3_10
.Ltmp259:
	movq	(%rsp), %rax
	leaq	.L__tvm_parallel_lambda.65(%rip), %rdi
	leaq	80(%rsp), %rsi
	movq	%r12, 80(%rsp)
	movq	%r13, 88(%rsp)
	xorl	%edx, %edx
	movq	%rax, 96(%rsp)
	callq	*(%r14)
	testl	%eax, %eax
	jne	.LBB3_10
.Ltmp260:
	movq	(%rsp), %rax
	leaq	.L__tvm_parallel_lambda.66(%rip), %rdi
	leaq	24(%rsp), %rsi
	xorl	%edx, %edx
	movq	%rax, 24(%rsp)
	movq	%r12, 32(%rsp)
	callq	*(%r14)
	testl	%eax, %eax
	jne	.LBB3_10
.Ltmp261:
	leaq	.L__tvm_parallel_lambda.67(%rip), %rdi
	leaq	40(%rsp), %rsi
	movq	%r15, 40(%rsp)
	xorl	%edx, %edx
	movq	%r12, 48(%rsp)
	callq	*(%r14)
	testl	%eax, %eax
	jne	.LBB3_10
.Ltmp262:
	movq	__TVMBackendFreeWorkspace@GOTPCREL(%rip), %r14
	movl	$1, %edi
	movl	%ebx, %esi
	movq	%r12, %rdx
	callq	*(%r14)
	testl	%eax, %eax
	movl	$-1, %eax
	jne	.LBB3_10
.Ltmp263:
	movq	(%rsp), %rdx
	movl	$1, %edi
	movl	%ebx, %esi
	callq	*(%r14)
	negl	%eax
	sbbl	%eax, %eax
	jmp	.LBB3_10
.Ltmp264:
.Lfunc_end3:
	.size	fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7_compute_, .Lfunc_end3-fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7_compute_
	.cfi_endproc

	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
.LCPI4_0:
	.long	0
	.long	1
	.long	2
	.long	3
	.long	4
	.long	5
	.long	6
	.long	7
	.long	8
	.long	9
	.long	10
	.long	11
	.long	12
	.long	13
	.long	14
	.long	15
	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI4_1:
	.long	727
.LCPI4_2:
	.long	49
	.text
	.p2align	4
	.type	.L__tvm_parallel_lambda,@function
.L__tvm_parallel_lambda:
.Lfunc_begin4:
	.cfi_startproc
	movl	8(%rsi), %esi
	movq	%rdx, %rcx
	leal	45(%rsi), %eax
	cltd
	idivl	%esi
	leal	1(%rdi), %esi
	movl	$46, %edx
	imull	%eax, %esi
	cmpl	$46, %esi
	cmovll	%esi, %edx
	imull	%edi, %eax
	cmpl	%edx, %eax
	jge	.LBB4_8
	pushq	%rbp
	.cfi_def_cfa_offset 16
	pushq	%r15
	.cfi_def_cfa_offset 24
	pushq	%r14
	.cfi_def_cfa_offset 32
	pushq	%r12
	.cfi_def_cfa_offset 40
	pushq	%rbx
	.cfi_def_cfa_offset 48
	.cfi_offset %rbx, -48
	.cfi_offset %r12, -40
	.cfi_offset %r14, -32
	.cfi_offset %r15, -24
	.cfi_offset %rbp, -16
	vmovdqa64	.LCPI4_0(%rip), %zmm0
	vpbroadcastd	.LCPI4_1(%rip), %zmm1
	vpbroadcastd	.LCPI4_2(%rip), %zmm2
	cltq
	movq	8(%rcx), %rsi
	movl	$65535, %r8d
	imulq	$4032, %rax, %rdi
	addq	(%rcx), %rdi
	movl	$6, %ecx
	.p2align	4
.LBB4_2:
	movl	%eax, %r9d
	shll	$4, %r9d
	movq	%rdi, %r10
	xorl	%r11d, %r11d
	vpbroadcastd	%r9d, %zmm3
	movl	$-1, %r9d
	vpord	%zmm0, %zmm3, %zmm3
	vpminsd	%zmm1, %zmm3, %zmm3
	vpmulld	%zmm2, %zmm3, %zmm3
	.p2align	4
.LBB4_3:
	movl	%r9d, %ebx
	sarl	$31, %ebx
	leal	-1(%r11), %ebp
	movl	$0, %r15d
	andnl	%r9d, %ebx, %r14d
	cmpl	$6, %r14d
	cmovgel	%ecx, %r14d
	leal	(,%r14,8), %ebx
	subl	%r14d, %ebx
	movl	%ebp, %r14d
	sarl	$31, %r14d
	andnl	%ebp, %r14d, %r14d
	cmpl	$6, %r14d
	cmovgel	%ecx, %r14d
	cmpl	%ebp, %r14d
	cmovel	%r8d, %r15d
	xorl	%r14d, %r14d
	kmovd	%r15d, %k1
	.p2align	4
.LBB4_4:
	vpbroadcastd	%ebx, %zmm4
	incl	%ebx
	vpaddd	%zmm3, %zmm4, %zmm4
	vmovd	%xmm4, %ebp
	vextracti32x4	$3, %zmm4, %xmm5
	vextracti128	$1, %ymm4, %xmm8
	movslq	%ebp, %r15
	vmovd	%xmm5, %ebp
	movslq	%ebp, %r12
	vpextrd	$1, %xmm5, %ebp
	vmovss	(%rsi,%r12,4), %xmm6
	movslq	%ebp, %r12
	vpextrd	$2, %xmm5, %ebp
	vinsertps	$16, (%rsi,%r12,4), %xmm6, %xmm6
	movslq	%ebp, %r12
	vpextrd	$3, %xmm5, %ebp
	vextracti32x4	$2, %zmm4, %xmm5
	vinsertps	$32, (%rsi,%r12,4), %xmm6, %xmm6
	movslq	%ebp, %r12
	vmovd	%xmm5, %ebp
	vinsertps	$48, (%rsi,%r12,4), %xmm6, %xmm6
	movslq	%ebp, %r12
	vpextrd	$1, %xmm5, %ebp
	vmovss	(%rsi,%r12,4), %xmm7
	movslq	%ebp, %r12
	vpextrd	$2, %xmm5, %ebp
	vinsertps	$16, (%rsi,%r12,4), %xmm7, %xmm7
	movslq	%ebp, %r12
	vpextrd	$3, %xmm5, %ebp
	vinsertps	$32, (%rsi,%r12,4), %xmm7, %xmm7
	movslq	%ebp, %r12
	vmovd	%xmm8, %ebp
	vinsertps	$48, (%rsi,%r12,4), %xmm7, %xmm5
	movslq	%ebp, %r12
	vpextrd	$1, %xmm8, %ebp
	vmovss	(%rsi,%r12,4), %xmm7
	movslq	%ebp, %r12
	vpextrd	$2, %xmm8, %ebp
	vinsertps	$16, (%rsi,%r12,4), %xmm7, %xmm7
	movslq	%ebp, %r12
	vpextrd	$3, %xmm8, %ebp
	vmovss	(%rsi,%r15,4), %xmm8
	vinsertps	$32, (%rsi,%r12,4), %xmm7, %xmm7
	movslq	%ebp, %r12
	vpextrd	$1, %xmm4, %ebp
	movslq	%ebp, %r15
	vpextrd	$2, %xmm4, %ebp
	vinsertps	$48, (%rsi,%r12,4), %xmm7, %xmm7
	vinsertps	$16, (%rsi,%r15,4), %xmm8, %xmm8
	movslq	%ebp, %r15
	vpextrd	$3, %xmm4, %ebp
	vinsertps	$32, (%rsi,%r15,4), %xmm8, %xmm8
	movslq	%ebp, %r15
	vinsertps	$48, (%rsi,%r15,4), %xmm8, %xmm4
	vinsertf128	$1, %xmm6, %ymm5, %ymm5
	vinsertf128	$1, %xmm7, %ymm4, %ymm4
	vinsertf32x8	$1, %ymm5, %zmm4, %zmm4 {%k1} {z}
	vmovups	%zmm4, (%r10,%r14)
	addq	$64, %r14
	cmpq	$448, %r14
	jne	.LBB4_4
	incq	%r11
	addq	$448, %r10
	incl	%r9d
	cmpq	$9, %r11
	jne	.LBB4_3
	incq	%rax
	addq	$4032, %rdi
	cmpl	%eax, %edx
	jne	.LBB4_2
	popq	%rbx
	.cfi_def_cfa_offset 40
	popq	%r12
	.cfi_def_cfa_offset 32
	popq	%r14
	.cfi_def_cfa_offset 24
	popq	%r15
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	.cfi_restore %rbx
	.cfi_restore %r12
	.cfi_restore %r14
	.cfi_restore %r15
	.cfi_restore %rbp
.LBB4_8:
	xorl	%eax, %eax
	vzeroupper
	retq
.Lfunc_end4:
	.size	.L__tvm_parallel_lambda, .Lfunc_end4-.L__tvm_parallel_lambda
	.cfi_endproc

	.p2align	4
	.type	.L__tvm_parallel_lambda.64,@function
.L__tvm_parallel_lambda.64:
.Lfunc_begin5:
	.cfi_startproc
	movl	8(%rsi), %esi
	movq	%rdx, %rcx
	leal	321(%rsi), %eax
	cltd
	idivl	%esi
	leal	1(%rdi), %esi
	movl	$322, %edx
	imull	%eax, %esi
	cmpl	$322, %esi
	cmovll	%esi, %edx
	imull	%edi, %eax
	cmpl	%edx, %eax
	jge	.LBB5_3
	movq	(%rcx), %rsi
	movq	8(%rcx), %rdi
	movq	16(%rcx), %rcx
	movslq	%eax, %r8
	vxorps	%xmm0, %xmm0, %xmm0
	imulq	$448, %r8, %r8
	leaq	384(%r8,%rcx), %rcx
	.p2align	4
.LBB5_2:
	cltq
	vxorps	%xmm2, %xmm2, %xmm2
	imulq	$-1840700269, %rax, %r8
	shrq	$32, %r8
	addl	%eax, %r8d
	movl	%r8d, %r9d
	shrl	$31, %r9d
	sarl	$2, %r8d
	addl	%r9d, %r8d
	leal	(,%r8,8), %r9d
	movl	%r8d, %r10d
	subl	%r9d, %r10d
	movl	%r8d, %r9d
	shll	$6, %r9d
	addl	%eax, %r10d
	subl	%r8d, %r9d
	shll	$4, %r8d
	incl	%eax
	leal	(%r9,%r10,8), %r9d
	leal	(%r8,%r8,8), %r8d
	subl	%r10d, %r9d
	movslq	%r8d, %r8
	movslq	%r9d, %r9
	vmovups	(%rdi,%r8,4), %zmm1
	vmovups	64(%rdi,%r8,4), %zmm9
	vmovups	128(%rdi,%r8,4), %zmm10
	vmovups	192(%rdi,%r8,4), %zmm8
	movq	%r9, %r10
	shlq	$6, %r10
	vmovups	128(%rsi,%r10), %zmm13
	vmovups	256(%rsi,%r10), %zmm15
	vmovups	(%rsi,%r10), %zmm11
	vmovups	64(%rsi,%r10), %zmm12
	vmovups	192(%rsi,%r10), %zmm14
	vmovups	320(%rsi,%r10), %zmm16
	vmovups	384(%rsi,%r10), %zmm17
	leal	7(%r9), %r10d
	addl	$14, %r9d
	movslq	%r10d, %r10
	movslq	%r9d, %r9
	shlq	$6, %r10
	shlq	$6, %r9
	vfmadd213ps	%zmm2, %zmm1, %zmm2
	vmovaps	%zmm1, %zmm5
	vmovaps	%zmm1, %zmm7
	vmovaps	%zmm1, %zmm3
	vmovaps	%zmm1, %zmm4
	vmovaps	%zmm1, %zmm6
	vfmadd213ps	%zmm0, %zmm13, %zmm5
	vfmadd213ps	%zmm0, %zmm15, %zmm7
	vfmadd213ps	%zmm0, %zmm11, %zmm3
	vfmadd213ps	%zmm0, %zmm12, %zmm4
	vfmadd213ps	%zmm0, %zmm14, %zmm6
	vfmadd213ps	%zmm0, %zmm16, %zmm1
	vfmadd231ps	%zmm11, %zmm9, %zmm2
	vmovups	128(%rsi,%r10), %zmm11
	vfmadd231ps	%zmm9, %zmm14, %zmm5
	vfmadd231ps	%zmm9, %zmm16, %zmm7
	vfmadd231ps	%zmm9, %zmm12, %zmm3
	vfmadd231ps	%zmm9, %zmm13, %zmm4
	vfmadd231ps	%zmm9, %zmm15, %zmm6
	vfmadd231ps	%zmm9, %zmm17, %zmm1
	vmovups	(%rsi,%r10), %zmm9
	vfmadd231ps	%zmm12, %zmm10, %zmm2
	vmovups	192(%rsi,%r10), %zmm12
	vfmadd231ps	%zmm15, %zmm10, %zmm5
	vfmadd231ps	%zmm17, %zmm10, %zmm7
	vmovups	64(%rsi,%r10), %zmm17
	vmovups	256(%rdi,%r8,4), %zmm15
	vfmadd231ps	%zmm13, %zmm10, %zmm3
	vfmadd231ps	%zmm14, %zmm10, %zmm4
	vfmadd231ps	%zmm16, %zmm10, %zmm6
	vmovups	256(%rsi,%r10), %zmm13
	vmovups	320(%rsi,%r10), %zmm14
	vfmadd231ps	%zmm10, %zmm0, %zmm1
	vmovups	384(%rsi,%r10), %zmm16
	vmovups	64(%rsi,%r9), %zmm10
	vfmadd231ps	%zmm0, %zmm8, %zmm2
	vfmadd231ps	%zmm8, %zmm9, %zmm3
	vfmadd231ps	%zmm8, %zmm11, %zmm5
	vfmadd231ps	%zmm8, %zmm12, %zmm6
	vfmadd231ps	%zmm8, %zmm17, %zmm4
	vfmadd231ps	%zmm9, %zmm15, %zmm2
	vmovups	320(%rdi,%r8,4), %zmm9
	vfmadd231ps	%zmm8, %zmm13, %zmm7
	vfmadd231ps	%zmm8, %zmm14, %zmm1
	vfmadd231ps	%zmm15, %zmm17, %zmm3
	vfmadd231ps	%zmm15, %zmm12, %zmm5
	vmovups	384(%rdi,%r8,4), %zmm8
	vfmadd231ps	%zmm15, %zmm13, %zmm6
	vfmadd231ps	%zmm15, %zmm11, %zmm4
	vfmadd231ps	%zmm15, %zmm14, %zmm7
	vfmadd231ps	%zmm15, %zmm16, %zmm1
	vmovups	(%rsi,%r9), %zmm15
	vfmadd231ps	%zmm17, %zmm9, %zmm2
	vfmadd231ps	%zmm11, %zmm9, %zmm3
	vfmadd231ps	%zmm12, %zmm9, %zmm4
	vfmadd231ps	%zmm13, %zmm9, %zmm5
	vfmadd231ps	%zmm14, %zmm9, %zmm6
	vmovups	128(%rsi,%r9), %zmm11
	vmovups	192(%rsi,%r9), %zmm12
	vmovups	256(%rsi,%r9), %zmm13
	vmovups	320(%rsi,%r9), %zmm14
	vmovups	448(%rdi,%r8,4), %zmm17
	vfmadd231ps	%zmm16, %zmm9, %zmm7
	vfmadd231ps	%zmm9, %zmm0, %zmm1
	vmovups	384(%rsi,%r9), %zmm16
	vfmadd231ps	%zmm0, %zmm8, %zmm2
	vfmadd231ps	%zmm8, %zmm15, %zmm3
	vfmadd231ps	%zmm8, %zmm10, %zmm4
	vfmadd231ps	%zmm8, %zmm11, %zmm5
	vfmadd231ps	%zmm8, %zmm12, %zmm6
	vfmadd231ps	%zmm8, %zmm13, %zmm7
	vfmadd231ps	%zmm8, %zmm14, %zmm1
	vfmadd231ps	%zmm15, %zmm17, %zmm2
	vmovups	512(%rdi,%r8,4), %zmm15
	vfmadd231ps	%zmm17, %zmm10, %zmm3
	vfmadd231ps	%zmm17, %zmm11, %zmm4
	vfmadd231ps	%zmm17, %zmm12, %zmm5
	vfmadd231ps	%zmm17, %zmm13, %zmm6
	vfmadd231ps	%zmm17, %zmm14, %zmm7
	vfmadd231ps	%zmm17, %zmm16, %zmm1
	vfmadd231ps	%zmm10, %zmm15, %zmm2
	vfmadd231ps	%zmm11, %zmm15, %zmm3
	vfmadd231ps	%zmm12, %zmm15, %zmm4
	vfmadd231ps	%zmm13, %zmm15, %zmm5
	vfmadd231ps	%zmm14, %zmm15, %zmm6
	vfmadd231ps	%zmm16, %zmm15, %zmm7
	vfmadd231ps	%zmm15, %zmm0, %zmm1
	vmovups	%zmm2, -384(%rcx)
	vmovups	%zmm3, -320(%rcx)
	vmovups	%zmm4, -256(%rcx)
	vmovups	%zmm5, -192(%rcx)
	vmovups	%zmm6, -128(%rcx)
	vmovups	%zmm7, -64(%rcx)
	vmovups	%zmm1, (%rcx)
	addq	$448, %rcx
	cmpl	%eax, %edx
	jne	.LBB5_2
.LBB5_3:
	xorl	%eax, %eax
	vzeroupper
	retq
.Lfunc_end5:
	.size	.L__tvm_parallel_lambda.64, .Lfunc_end5-.L__tvm_parallel_lambda.64
	.cfi_endproc

	.p2align	4
	.type	.L__tvm_parallel_lambda.65,@function
.L__tvm_parallel_lambda.65:
.Lfunc_begin6:
	.cfi_startproc
	movl	8(%rsi), %esi
	movq	%rdx, %rcx
	leal	2253(%rsi), %eax
	cltd
	idivl	%esi
	leal	1(%rdi), %esi
	movl	$2254, %edx
	imull	%eax, %esi
	cmpl	$2254, %esi
	cmovll	%esi, %edx
	imull	%edi, %eax
	cmpl	%edx, %eax
	jge	.LBB6_6
	pushq	%rbp
	.cfi_def_cfa_offset 16
	pushq	%r15
	.cfi_def_cfa_offset 24
	pushq	%r14
	.cfi_def_cfa_offset 32
	pushq	%r12
	.cfi_def_cfa_offset 40
	pushq	%rbx
	.cfi_def_cfa_offset 48
	.cfi_offset %rbx, -48
	.cfi_offset %r12, -40
	.cfi_offset %r14, -32
	.cfi_offset %r15, -24
	.cfi_offset %rbp, -16
	movq	8(%rcx), %rdi
	movq	(%rcx), %rsi
	movq	16(%rcx), %rcx
	cltq
	addq	$64, %rdi
	.p2align	4
.LBB6_2:
	imulq	$-1840700269, %rax, %r10
	imulq	$-880334911, %rax, %r11
	movl	%eax, %ebp
	vxorps	%xmm0, %xmm0, %xmm0
	xorl	%r14d, %r14d
	vxorps	%xmm1, %xmm1, %xmm1
	vxorps	%xmm2, %xmm2, %xmm2
	vxorps	%xmm3, %xmm3, %xmm3
	vxorps	%xmm4, %xmm4, %xmm4
	vxorps	%xmm5, %xmm5, %xmm5
	vxorps	%xmm6, %xmm6, %xmm6
	shrq	$32, %r10
	shrq	$32, %r11
	addl	%eax, %r10d
	addl	%eax, %r11d
	movl	%r10d, %r9d
	shrl	$31, %r9d
	shrl	$2, %r10d
	movl	%r11d, %r8d
	shrl	$31, %r8d
	sarl	$8, %r11d
	addl	%r9d, %r10d
	addl	%r8d, %r11d
	leal	(,%r10,8), %r9d
	leal	(,%r11,8), %r8d
	imull	$1664, %r11d, %ebx
	subl	%r9d, %r10d
	leal	(%r11,%r11,2), %r9d
	addl	%eax, %r10d
	leal	(%r11,%r9,4), %r9d
	imull	$322, %r11d, %r11d
	imull	$112, %r10d, %r10d
	subl	%r11d, %ebp
	imull	$18725, %ebp, %r11d
	movl	%r11d, %ebp
	shrl	$31, %ebp
	sarl	$17, %r11d
	addl	%ebp, %r11d
	imull	$11648, %r11d, %r11d
	addl	%ebx, %r11d
	leaq	1(%r8), %rbx
	movslq	%r11d, %r11
	leaq	(%rdi,%r11,4), %r11
	.p2align	4
.LBB6_3:
	movl	%r14d, %r15d
	shrl	$3, %r15d
	leal	(%r8,%r14), %ebp
	vmovups	-64(%r11), %zmm7
	vmovups	(%r11), %zmm8
	subq	$-128, %r11
	addl	%r9d, %r15d
	andl	$14, %ebp
	shrl	%r15d
	imull	$784, %r15d, %r15d
	addl	%r10d, %r15d
	orl	%r15d, %ebp
	movslq	%ebp, %r12
	leal	(%rbx,%r14), %ebp
	addq	$2, %r14
	vfmadd231ps	(%rsi,%r12,4){1to16}, %zmm7, %zmm0
	vfmadd231ps	64(%rsi,%r12,4){1to16}, %zmm7, %zmm1
	vfmadd231ps	128(%rsi,%r12,4){1to16}, %zmm7, %zmm2
	vfmadd231ps	192(%rsi,%r12,4){1to16}, %zmm7, %zmm3
	vfmadd231ps	256(%rsi,%r12,4){1to16}, %zmm7, %zmm4
	vfmadd231ps	320(%rsi,%r12,4){1to16}, %zmm7, %zmm5
	vfmadd231ps	384(%rsi,%r12,4){1to16}, %zmm7, %zmm6
	andl	$15, %ebp
	orl	%r15d, %ebp
	movslq	%ebp, %r15
	vfmadd231ps	(%rsi,%r15,4){1to16}, %zmm8, %zmm0
	vfmadd231ps	64(%rsi,%r15,4){1to16}, %zmm8, %zmm1
	vfmadd231ps	128(%rsi,%r15,4){1to16}, %zmm8, %zmm2
	vfmadd231ps	192(%rsi,%r15,4){1to16}, %zmm8, %zmm3
	vfmadd231ps	256(%rsi,%r15,4){1to16}, %zmm8, %zmm4
	vfmadd231ps	320(%rsi,%r15,4){1to16}, %zmm8, %zmm5
	vfmadd231ps	384(%rsi,%r15,4){1to16}, %zmm8, %zmm6
	cmpq	$104, %r14
	jne	.LBB6_3
	imulq	$448, %rax, %r8
	incq	%rax
	vmovups	%zmm0, (%rcx,%r8)
	vmovups	%zmm1, 64(%rcx,%r8)
	vmovups	%zmm2, 128(%rcx,%r8)
	vmovups	%zmm3, 192(%rcx,%r8)
	vmovups	%zmm4, 256(%rcx,%r8)
	vmovups	%zmm5, 320(%rcx,%r8)
	vmovups	%zmm6, 384(%rcx,%r8)
	cmpl	%eax, %edx
	jne	.LBB6_2
	popq	%rbx
	.cfi_def_cfa_offset 40
	popq	%r12
	.cfi_def_cfa_offset 32
	popq	%r14
	.cfi_def_cfa_offset 24
	popq	%r15
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	.cfi_restore %rbx
	.cfi_restore %r12
	.cfi_restore %r14
	.cfi_restore %r15
	.cfi_restore %rbp
.LBB6_6:
	xorl	%eax, %eax
	vzeroupper
	retq
.Lfunc_end6:
	.size	.L__tvm_parallel_lambda.65, .Lfunc_end6-.L__tvm_parallel_lambda.65
	.cfi_endproc

	.p2align	4
	.type	.L__tvm_parallel_lambda.66,@function
.L__tvm_parallel_lambda.66:
.Lfunc_begin7:
	.cfi_startproc
	movl	8(%rsi), %esi
	movq	%rdx, %rcx
	leal	321(%rsi), %eax
	cltd
	idivl	%esi
	leal	1(%rdi), %esi
	movl	$322, %edx
	imull	%eax, %esi
	cmpl	$322, %esi
	cmovll	%esi, %edx
	imull	%edi, %eax
	subl	%eax, %edx
	jle	.LBB7_3
	movq	(%rcx), %rsi
	movq	8(%rcx), %rcx
	cltq
	vxorps	%xmm0, %xmm0, %xmm0
	imulq	$448, %rax, %rax
	addq	$865920, %rsi
	.p2align	4
.LBB7_2:
	vaddps	-865920(%rsi,%rax), %zmm0, %zmm1
	vaddps	-865856(%rsi,%rax), %zmm0, %zmm2
	vaddps	-865792(%rsi,%rax), %zmm0, %zmm3
	vaddps	-865728(%rsi,%rax), %zmm0, %zmm4
	vaddps	-865664(%rsi,%rax), %zmm0, %zmm5
	vaddps	-865600(%rsi,%rax), %zmm0, %zmm6
	vaddps	-865536(%rsi,%rax), %zmm0, %zmm7
	vaddps	-721664(%rsi,%rax), %zmm1, %zmm1
	vaddps	-721600(%rsi,%rax), %zmm2, %zmm2
	vaddps	-721536(%rsi,%rax), %zmm3, %zmm3
	vaddps	-721472(%rsi,%rax), %zmm4, %zmm4
	vaddps	-721408(%rsi,%rax), %zmm5, %zmm5
	vaddps	-721344(%rsi,%rax), %zmm6, %zmm6
	vaddps	-721280(%rsi,%rax), %zmm7, %zmm7
	vaddps	-577408(%rsi,%rax), %zmm1, %zmm1
	vaddps	-577344(%rsi,%rax), %zmm2, %zmm2
	vaddps	-577280(%rsi,%rax), %zmm3, %zmm3
	vaddps	-577216(%rsi,%rax), %zmm4, %zmm4
	vaddps	-577152(%rsi,%rax), %zmm5, %zmm5
	vaddps	-577088(%rsi,%rax), %zmm6, %zmm6
	vaddps	-577024(%rsi,%rax), %zmm7, %zmm7
	vaddps	-433152(%rsi,%rax), %zmm1, %zmm1
	vaddps	-433088(%rsi,%rax), %zmm2, %zmm2
	vaddps	-433024(%rsi,%rax), %zmm3, %zmm3
	vaddps	-432960(%rsi,%rax), %zmm4, %zmm4
	vaddps	-432896(%rsi,%rax), %zmm5, %zmm5
	vaddps	-432832(%rsi,%rax), %zmm6, %zmm6
	vaddps	-432768(%rsi,%rax), %zmm7, %zmm7
	vaddps	-288896(%rsi,%rax), %zmm1, %zmm1
	vaddps	-288832(%rsi,%rax), %zmm2, %zmm2
	vaddps	-288768(%rsi,%rax), %zmm3, %zmm3
	vaddps	-288704(%rsi,%rax), %zmm4, %zmm4
	vaddps	-288640(%rsi,%rax), %zmm5, %zmm5
	vaddps	-288576(%rsi,%rax), %zmm6, %zmm6
	vaddps	-288512(%rsi,%rax), %zmm7, %zmm7
	vaddps	-144640(%rsi,%rax), %zmm1, %zmm1
	vaddps	-144576(%rsi,%rax), %zmm2, %zmm2
	vaddps	-144512(%rsi,%rax), %zmm3, %zmm3
	vaddps	-144448(%rsi,%rax), %zmm4, %zmm4
	vaddps	-144384(%rsi,%rax), %zmm5, %zmm5
	vaddps	-144320(%rsi,%rax), %zmm6, %zmm6
	vaddps	-144256(%rsi,%rax), %zmm7, %zmm7
	vaddps	-384(%rsi,%rax), %zmm1, %zmm1
	vaddps	-320(%rsi,%rax), %zmm2, %zmm2
	vaddps	-256(%rsi,%rax), %zmm3, %zmm3
	vaddps	-192(%rsi,%rax), %zmm4, %zmm4
	vaddps	-128(%rsi,%rax), %zmm5, %zmm5
	vaddps	-64(%rsi,%rax), %zmm6, %zmm6
	vaddps	(%rsi,%rax), %zmm7, %zmm7
	vmovups	%zmm1, (%rcx,%rax)
	vmovups	%zmm2, 64(%rcx,%rax)
	vmovups	%zmm3, 128(%rcx,%rax)
	vmovups	%zmm4, 192(%rcx,%rax)
	vmovups	%zmm5, 256(%rcx,%rax)
	vmovups	%zmm6, 320(%rcx,%rax)
	vmovups	%zmm7, 384(%rcx,%rax)
	addq	$448, %rax
	decl	%edx
	jne	.LBB7_2
.LBB7_3:
	xorl	%eax, %eax
	vzeroupper
	retq
.Lfunc_end7:
	.size	.L__tvm_parallel_lambda.66, .Lfunc_end7-.L__tvm_parallel_lambda.66
	.cfi_endproc

	.p2align	4
	.type	.L__tvm_parallel_lambda.67,@function
.L__tvm_parallel_lambda.67:
.Lfunc_begin8:
	.cfi_startproc
	movl	8(%rsi), %esi
	movq	%rdx, %rcx
	leal	727(%rsi), %eax
	cltd
	idivl	%esi
	leal	1(%rdi), %esi
	movl	$728, %edx
	imull	%eax, %esi
	cmpl	$728, %esi
	cmovll	%esi, %edx
	imull	%edi, %eax
	cmpl	%edx, %eax
	jge	.LBB8_3
	movslq	%eax, %rdi
	movq	8(%rcx), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	imulq	$196, %rdi, %rdi
	addq	(%rcx), %rdi
	.p2align	4
.LBB8_2:
	movl	%eax, %r8d
	shrl	$4, %r8d
	movl	%eax, %ecx
	andl	$15, %ecx
	incl	%eax
	imull	$784, %r8d, %r8d
	leal	(%r8,%rcx), %r9d
	movslq	%r9d, %r9
	vmovss	(%rsi,%r9,4), %xmm1
	vmovss	256(%rsi,%r9,4), %xmm2
	vinsertps	$16, 64(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$16, 320(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$32, 128(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$32, 384(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$48, 192(%rsi,%r9,4), %xmm1, %xmm1
	leal	112(%r8,%rcx), %r9d
	movslq	%r9d, %r9
	vinsertf128	$1, %xmm2, %ymm1, %ymm1
	vmaxps	%ymm1, %ymm0, %ymm1
	vextractf128	$1, %ymm1, %xmm2
	vmovups	%xmm1, (%rdi)
	vextractps	$2, %xmm2, 24(%rdi)
	vmovq	%xmm2, 16(%rdi)
	vmovss	(%rsi,%r9,4), %xmm1
	vmovss	256(%rsi,%r9,4), %xmm2
	vinsertps	$16, 64(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$16, 320(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$32, 128(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$32, 384(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$48, 192(%rsi,%r9,4), %xmm1, %xmm1
	leal	224(%r8,%rcx), %r9d
	movslq	%r9d, %r9
	vinsertf128	$1, %xmm2, %ymm1, %ymm1
	vmaxps	%ymm1, %ymm0, %ymm1
	vextractf128	$1, %ymm1, %xmm2
	vmovups	%xmm1, 28(%rdi)
	vextractps	$2, %xmm2, 52(%rdi)
	vmovq	%xmm2, 44(%rdi)
	vmovss	(%rsi,%r9,4), %xmm1
	vmovss	256(%rsi,%r9,4), %xmm2
	vinsertps	$16, 64(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$16, 320(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$32, 128(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$32, 384(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$48, 192(%rsi,%r9,4), %xmm1, %xmm1
	leal	336(%r8,%rcx), %r9d
	movslq	%r9d, %r9
	vinsertf128	$1, %xmm2, %ymm1, %ymm1
	vmaxps	%ymm1, %ymm0, %ymm1
	vextractf128	$1, %ymm1, %xmm2
	vmovups	%xmm1, 56(%rdi)
	vextractps	$2, %xmm2, 80(%rdi)
	vmovq	%xmm2, 72(%rdi)
	vmovss	(%rsi,%r9,4), %xmm1
	vmovss	256(%rsi,%r9,4), %xmm2
	vinsertps	$16, 64(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$16, 320(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$32, 128(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$32, 384(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$48, 192(%rsi,%r9,4), %xmm1, %xmm1
	leal	448(%r8,%rcx), %r9d
	movslq	%r9d, %r9
	vinsertf128	$1, %xmm2, %ymm1, %ymm1
	vmaxps	%ymm1, %ymm0, %ymm1
	vextractf128	$1, %ymm1, %xmm2
	vmovups	%xmm1, 84(%rdi)
	vextractps	$2, %xmm2, 108(%rdi)
	vmovq	%xmm2, 100(%rdi)
	vmovss	(%rsi,%r9,4), %xmm1
	vmovss	256(%rsi,%r9,4), %xmm2
	vinsertps	$16, 64(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$16, 320(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$32, 128(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$32, 384(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$48, 192(%rsi,%r9,4), %xmm1, %xmm1
	leal	560(%r8,%rcx), %r9d
	leal	672(%r8,%rcx), %ecx
	movslq	%r9d, %r9
	movslq	%ecx, %rcx
	vinsertf128	$1, %xmm2, %ymm1, %ymm1
	vmaxps	%ymm1, %ymm0, %ymm1
	vextractf128	$1, %ymm1, %xmm2
	vmovups	%xmm1, 112(%rdi)
	vextractps	$2, %xmm2, 136(%rdi)
	vmovq	%xmm2, 128(%rdi)
	vmovss	(%rsi,%r9,4), %xmm1
	vmovss	256(%rsi,%r9,4), %xmm2
	vinsertps	$16, 64(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$16, 320(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$32, 128(%rsi,%r9,4), %xmm1, %xmm1
	vinsertps	$32, 384(%rsi,%r9,4), %xmm2, %xmm2
	vinsertps	$48, 192(%rsi,%r9,4), %xmm1, %xmm1
	vinsertf128	$1, %xmm2, %ymm1, %ymm1
	vmaxps	%ymm1, %ymm0, %ymm1
	vextractf128	$1, %ymm1, %xmm2
	vmovups	%xmm1, 140(%rdi)
	vextractps	$2, %xmm2, 164(%rdi)
	vmovq	%xmm2, 156(%rdi)
	vmovss	(%rsi,%rcx,4), %xmm1
	vmovss	256(%rsi,%rcx,4), %xmm2
	vinsertps	$16, 64(%rsi,%rcx,4), %xmm1, %xmm1
	vinsertps	$16, 320(%rsi,%rcx,4), %xmm2, %xmm2
	vinsertps	$32, 128(%rsi,%rcx,4), %xmm1, %xmm1
	vinsertps	$32, 384(%rsi,%rcx,4), %xmm2, %xmm2
	vinsertps	$48, 192(%rsi,%rcx,4), %xmm1, %xmm1
	vinsertf128	$1, %xmm2, %ymm1, %ymm1
	vmaxps	%ymm1, %ymm0, %ymm1
	vextractf128	$1, %ymm1, %xmm2
	vmovups	%xmm1, 168(%rdi)
	vextractps	$2, %xmm2, 192(%rdi)
	vmovq	%xmm2, 184(%rdi)
	addq	$196, %rdi
	cmpl	%eax, %edx
	jne	.LBB8_2
.LBB8_3:
	xorl	%eax, %eax
	vzeroupper
	retq
.Lfunc_end8:
	.size	.L__tvm_parallel_lambda.67, .Lfunc_end8-.L__tvm_parallel_lambda.67
	.cfi_endproc

	.weak	__tvm_ffi_main
	.p2align	4
	.type	__tvm_ffi_main,@function
__tvm_ffi_main:
.Lfunc_begin9:
	.cfi_startproc
	jmp	__tvm_ffi_fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7@PLT
.Lfunc_end9:
	.size	__tvm_ffi_main, .Lfunc_end9-__tvm_ffi_main
	.cfi_endproc

	.section	.text.tvm.fp16.conv,"ax",@progbits
	.weak	__truncsfhf2
	.p2align	4
	.type	__truncsfhf2,@function
__truncsfhf2:
.Lfunc_begin10:
	.cfi_startproc
	vmovd	%xmm0, %eax
	movl	%eax, %edx
	andl	$2147483647, %edx
	leal	-947912704(%rdx), %ecx
	leal	-1199570944(%rdx), %esi
	cmpl	%esi, %ecx
	jae	.LBB10_5
	movl	%eax, %edx
	movl	%eax, %esi
	shrl	$13, %edx
	andl	$8191, %esi
	cmpl	$4097, %esi
	jb	.LBB10_3
	addl	$-114687, %edx
	movl	%edx, %ecx
	jmp	.LBB10_13
.LBB10_5:
	cmpl	$2139095041, %edx
	jb	.LBB10_7
	movl	$2317, %ecx
	bextrl	%ecx, %eax, %ecx
	orl	$32256, %ecx
	jmp	.LBB10_13
.LBB10_3:
	leal	-114688(%rdx), %ecx
	cmpl	$4096, %esi
	jne	.LBB10_13
	andl	$1, %edx
	addl	%edx, %ecx
	jmp	.LBB10_13
.LBB10_7:
	movl	$31744, %ecx
	cmpl	$1199570943, %edx
	ja	.LBB10_13
	xorl	%ecx, %ecx
	cmpl	$754974720, %edx
	jb	.LBB10_13
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
	jb	.LBB10_11
	incl	%ecx
	jmp	.LBB10_13
.LBB10_11:
	cmpl	$4096, %edx
	jne	.LBB10_13
	movl	%ecx, %edx
	andl	$1, %edx
	addl	%edx, %ecx
.LBB10_13:
	shrl	$16, %eax
	andl	$32768, %eax
	orl	%ecx, %eax
	vpinsrw	$0, %eax, %xmm0, %xmm0
	retq
.Lfunc_end10:
	.size	__truncsfhf2, .Lfunc_end10-__truncsfhf2
	.cfi_endproc

	.weak	__extendhfsf2
	.p2align	4
	.type	__extendhfsf2,@function
__extendhfsf2:
.Lfunc_begin11:
	.cfi_startproc
	vpextrw	$0, %xmm0, %eax
	movl	%eax, %ecx
	andl	$32767, %ecx
	leal	-1024(%rcx), %edx
	cmpw	$30719, %dx
	ja	.LBB11_2
	shll	$13, %ecx
	addl	$939524096, %ecx
	jmp	.LBB11_7
.LBB11_2:
	cmpw	$31744, %cx
	jb	.LBB11_4
	shll	$13, %ecx
	orl	$2139095040, %ecx
	jmp	.LBB11_7
.LBB11_4:
	testl	%ecx, %ecx
	je	.LBB11_5
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
	jmp	.LBB11_7
.LBB11_5:
	xorl	%ecx, %ecx
.LBB11_7:
	andl	$32768, %eax
	shll	$16, %eax
	orl	%ecx, %eax
	vmovd	%eax, %xmm0
	retq
.Lfunc_end11:
	.size	__extendhfsf2, .Lfunc_end11-__extendhfsf2
	.cfi_endproc

	.type	__TVMBackendParallelLaunch,@object
	.bss
	.weak	__TVMBackendParallelLaunch
	.p2align	3, 0x0
__TVMBackendParallelLaunch:
	.quad	0
	.size	__TVMBackendParallelLaunch, 8

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
	.asciz	"4"
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
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7(x: Tensor([1, 728, 7, 7], float32), w_depth: Tensor([46, 1, 3, 3, 16], float32), w_point: Tensor([46, 728, 1, 1, 16], float32), relu: Tensor([1, 728, 7, 7], float32))"
	.size	.L.str.5, 240

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
	.asciz	"1"
	.size	.L.str.12, 2

	.type	.L.str.13,@object
.L.str.13:
	.asciz	"2"
	.size	.L.str.13, 2

	.type	.L.str.14,@object
.L.str.14:
	.asciz	"3"
	.size	.L.str.14, 2

	.type	.L.str.15,@object
.L.str.15:
	.asciz	"ValueError"
	.size	.L.str.15, 11

	.type	.L.str.16,@object
.L.str.16:
	.asciz	"Mismatched "
	.size	.L.str.16, 12

	.type	.L.str.17,@object
.L.str.17:
	.asciz	"x"
	.size	.L.str.17, 2

	.type	.L.str.18,@object
.L.str.18:
	.asciz	".ndim on argument #"
	.size	.L.str.18, 20

	.type	.L.str.19,@object
.L.str.19:
	.asciz	".dtype on argument #"
	.size	.L.str.19, 21

	.type	.L.str.20,@object
.L.str.20:
	.asciz	"float32"
	.size	.L.str.20, 8

	.type	.L.str.21,@object
.L.str.21:
	.asciz	".device_type on argument #"
	.size	.L.str.21, 27

	.type	.L.str.22,@object
.L.str.22:
	.asciz	"cpu"
	.size	.L.str.22, 4

	.type	.L.str.23,@object
.L.str.23:
	.asciz	"w_depth"
	.size	.L.str.23, 8

	.type	.L.str.24,@object
.L.str.24:
	.asciz	"5"
	.size	.L.str.24, 2

	.type	.L.str.25,@object
.L.str.25:
	.asciz	"w_point"
	.size	.L.str.25, 8

	.type	.L.str.26,@object
.L.str.26:
	.asciz	"relu"
	.size	.L.str.26, 5

	.type	.L.str.27,@object
.L.str.27:
	.asciz	".strides on argument #"
	.size	.L.str.27, 23

	.type	.L.str.28,@object
.L.str.28:
	.asciz	"`,\n  expected to be compact array"
	.size	.L.str.28, 34

	.type	.L.str.29,@object
.L.str.29:
	.asciz	" data pointer is NULL on argument #"
	.size	.L.str.29, 36

	.type	.L.str.30,@object
.L.str.30:
	.asciz	"`,\n  expected non-NULL data pointer"
	.size	.L.str.30, 36

	.type	.L.str.31,@object
.L.str.31:
	.asciz	"w_depth.device_id"
	.size	.L.str.31, 18

	.type	.L.str.32,@object
.L.str.32:
	.asciz	" on argument #"
	.size	.L.str.32, 15

	.type	.L.str.33,@object
.L.str.33:
	.asciz	"`,\n  expected to match "
	.size	.L.str.33, 24

	.type	.L.str.34,@object
.L.str.34:
	.asciz	"x.device_id"
	.size	.L.str.34, 12

	.type	.L.str.35,@object
.L.str.35:
	.asciz	"w_point.device_id"
	.size	.L.str.35, 18

	.type	.L.str.36,@object
.L.str.36:
	.asciz	"relu.device_id"
	.size	.L.str.36, 15

	.type	.L.str.37,@object
.L.str.37:
	.asciz	"Invalid "
	.size	.L.str.37, 9

	.type	.L.str.38,@object
.L.str.38:
	.asciz	"x.shape[0]"
	.size	.L.str.38, 11

	.type	.L.str.39,@object
.L.str.39:
	.asciz	"x.shape[1]"
	.size	.L.str.39, 11

	.type	.L.str.40,@object
.L.str.40:
	.asciz	"728"
	.size	.L.str.40, 4

	.type	.L.str.41,@object
.L.str.41:
	.asciz	"x.shape[2]"
	.size	.L.str.41, 11

	.type	.L.str.42,@object
.L.str.42:
	.asciz	"7"
	.size	.L.str.42, 2

	.type	.L.str.43,@object
.L.str.43:
	.asciz	"x.shape[3]"
	.size	.L.str.43, 11

	.type	.L.str.44,@object
.L.str.44:
	.asciz	"x.byte_offset"
	.size	.L.str.44, 14

	.type	.L.str.45,@object
.L.str.45:
	.asciz	"w_depth.shape[0]"
	.size	.L.str.45, 17

	.type	.L.str.46,@object
.L.str.46:
	.asciz	"46"
	.size	.L.str.46, 3

	.type	.L.str.47,@object
.L.str.47:
	.asciz	"w_depth.shape[1]"
	.size	.L.str.47, 17

	.type	.L.str.48,@object
.L.str.48:
	.asciz	"w_depth.shape[2]"
	.size	.L.str.48, 17

	.type	.L.str.49,@object
.L.str.49:
	.asciz	"w_depth.shape[3]"
	.size	.L.str.49, 17

	.type	.L.str.50,@object
.L.str.50:
	.asciz	"w_depth.shape[4]"
	.size	.L.str.50, 17

	.type	.L.str.51,@object
.L.str.51:
	.asciz	"16"
	.size	.L.str.51, 3

	.type	.L.str.52,@object
.L.str.52:
	.asciz	"w_depth.byte_offset"
	.size	.L.str.52, 20

	.type	.L.str.53,@object
.L.str.53:
	.asciz	"w_point.shape[0]"
	.size	.L.str.53, 17

	.type	.L.str.54,@object
.L.str.54:
	.asciz	"w_point.shape[1]"
	.size	.L.str.54, 17

	.type	.L.str.55,@object
.L.str.55:
	.asciz	"w_point.shape[2]"
	.size	.L.str.55, 17

	.type	.L.str.56,@object
.L.str.56:
	.asciz	"w_point.shape[3]"
	.size	.L.str.56, 17

	.type	.L.str.57,@object
.L.str.57:
	.asciz	"w_point.shape[4]"
	.size	.L.str.57, 17

	.type	.L.str.58,@object
.L.str.58:
	.asciz	"w_point.byte_offset"
	.size	.L.str.58, 20

	.type	.L.str.59,@object
.L.str.59:
	.asciz	"relu.shape[0]"
	.size	.L.str.59, 14

	.type	.L.str.60,@object
.L.str.60:
	.asciz	"relu.shape[1]"
	.size	.L.str.60, 14

	.type	.L.str.61,@object
.L.str.61:
	.asciz	"relu.shape[2]"
	.size	.L.str.61, 14

	.type	.L.str.62,@object
.L.str.62:
	.asciz	"relu.shape[3]"
	.size	.L.str.62, 14

	.type	.L.str.63,@object
.L.str.63:
	.asciz	"relu.byte_offset"
	.size	.L.str.63, 17

	.type	__TVMBackendAllocWorkspace,@object
	.bss
	.weak	__TVMBackendAllocWorkspace
	.p2align	3, 0x0
__TVMBackendAllocWorkspace:
	.quad	0
	.size	__TVMBackendAllocWorkspace, 8

	.type	__TVMBackendFreeWorkspace,@object
	.weak	__TVMBackendFreeWorkspace
	.p2align	3, 0x0
__TVMBackendFreeWorkspace:
	.quad	0
	.size	__TVMBackendFreeWorkspace, 8

	.section	.debug_loc,"",@progbits
.Ldebug_loc0:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Lfunc_begin0-.Lfunc_begin0
	.quad	.Ltmp60-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp60-.Lfunc_begin0
	.quad	.Ltmp119-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp119-.Lfunc_begin0
	.quad	.Ltmp128-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp128-.Lfunc_begin0
	.quad	.Ltmp129-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp129-.Lfunc_begin0
	.quad	.Ltmp141-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp141-.Lfunc_begin0
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
	.quad	.Ltmp10-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp10-.Lfunc_begin0
	.quad	.Ltmp11-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp11-.Lfunc_begin0
	.quad	.Ltmp19-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp19-.Lfunc_begin0
	.quad	.Ltmp124-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp124-.Lfunc_begin0
	.quad	.Ltmp125-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp125-.Lfunc_begin0
	.quad	.Ltmp126-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp126-.Lfunc_begin0
	.quad	.Ltmp127-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp127-.Lfunc_begin0
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
	.quad	.Ltmp2-.Lfunc_begin0
	.quad	.Ltmp5-.Lfunc_begin0
	.short	1
	.byte	80
	.quad	.Ltmp11-.Lfunc_begin0
	.quad	.Ltmp14-.Lfunc_begin0
	.short	1
	.byte	80
	.quad	0
	.quad	0
.Ldebug_loc3:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp7-.Lfunc_begin0
	.quad	.Ltmp8-.Lfunc_begin0
	.short	1
	.byte	82
	.quad	0
	.quad	0
.Ldebug_loc4:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp18-.Lfunc_begin0
	.quad	.Ltmp19-.Lfunc_begin0
	.short	1
	.byte	82
	.quad	0
	.quad	0
.Ldebug_loc5:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp26-.Lfunc_begin0
	.quad	.Ltmp27-.Lfunc_begin0
	.short	1
	.byte	82
	.quad	0
	.quad	0
.Ldebug_loc6:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp59-.Lfunc_begin0
	.quad	.Ltmp116-.Lfunc_begin0
	.short	2
	.byte	124
	.byte	0
	.quad	.Ltmp141-.Lfunc_begin0
	.quad	.Ltmp179-.Lfunc_begin0
	.short	2
	.byte	124
	.byte	0
	.quad	.Ltmp181-.Lfunc_begin0
	.quad	.Ltmp207-.Lfunc_begin0
	.short	2
	.byte	124
	.byte	0
	.quad	.Ltmp208-.Lfunc_begin0
	.quad	.Ltmp232-.Lfunc_begin0
	.short	2
	.byte	124
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc7:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp60-.Lfunc_begin0
	.quad	.Ltmp70-.Lfunc_begin0
	.short	2
	.byte	116
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc8:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp61-.Lfunc_begin0
	.quad	.Ltmp119-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp141-.Lfunc_begin0
	.quad	.Ltmp142-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp146-.Lfunc_begin0
	.quad	.Ltmp147-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp151-.Lfunc_begin0
	.quad	.Ltmp152-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp156-.Lfunc_begin0
	.quad	.Ltmp157-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp160-.Lfunc_begin0
	.quad	.Ltmp161-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp164-.Lfunc_begin0
	.quad	.Ltmp165-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp166-.Lfunc_begin0
	.quad	.Ltmp167-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp169-.Lfunc_begin0
	.quad	.Ltmp170-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp172-.Lfunc_begin0
	.quad	.Ltmp173-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp174-.Lfunc_begin0
	.quad	.Ltmp175-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp177-.Lfunc_begin0
	.quad	.Ltmp178-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp181-.Lfunc_begin0
	.quad	.Ltmp182-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp183-.Lfunc_begin0
	.quad	.Ltmp184-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp185-.Lfunc_begin0
	.quad	.Ltmp186-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp187-.Lfunc_begin0
	.quad	.Ltmp188-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp190-.Lfunc_begin0
	.quad	.Ltmp191-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp192-.Lfunc_begin0
	.quad	.Ltmp193-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp194-.Lfunc_begin0
	.quad	.Ltmp195-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp198-.Lfunc_begin0
	.quad	.Ltmp199-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp200-.Lfunc_begin0
	.quad	.Ltmp201-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp202-.Lfunc_begin0
	.quad	.Ltmp203-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp204-.Lfunc_begin0
	.quad	.Ltmp205-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp208-.Lfunc_begin0
	.quad	.Ltmp209-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp210-.Lfunc_begin0
	.quad	.Ltmp211-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp212-.Lfunc_begin0
	.quad	.Ltmp213-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp214-.Lfunc_begin0
	.quad	.Ltmp215-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp216-.Lfunc_begin0
	.quad	.Ltmp217-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp218-.Lfunc_begin0
	.quad	.Ltmp219-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp221-.Lfunc_begin0
	.quad	.Ltmp222-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp223-.Lfunc_begin0
	.quad	.Ltmp224-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp225-.Lfunc_begin0
	.quad	.Ltmp226-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp227-.Lfunc_begin0
	.quad	.Ltmp228-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp229-.Lfunc_begin0
	.quad	.Ltmp230-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	0
	.quad	0
.Ldebug_loc9:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp62-.Lfunc_begin0
	.quad	.Ltmp118-.Lfunc_begin0
	.short	2
	.byte	127
	.byte	0
	.quad	.Ltmp141-.Lfunc_begin0
	.quad	.Ltmp179-.Lfunc_begin0
	.short	2
	.byte	127
	.byte	0
	.quad	.Ltmp181-.Lfunc_begin0
	.quad	.Ltmp207-.Lfunc_begin0
	.short	2
	.byte	127
	.byte	0
	.quad	.Ltmp208-.Lfunc_begin0
	.quad	.Ltmp232-.Lfunc_begin0
	.short	2
	.byte	127
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc10:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp63-.Lfunc_begin0
	.quad	.Ltmp77-.Lfunc_begin0
	.short	2
	.byte	113
	.byte	0
	.quad	.Ltmp141-.Lfunc_begin0
	.quad	.Ltmp143-.Lfunc_begin0
	.short	2
	.byte	113
	.byte	0
	.quad	.Ltmp146-.Lfunc_begin0
	.quad	.Ltmp148-.Lfunc_begin0
	.short	2
	.byte	113
	.byte	0
	.quad	.Ltmp151-.Lfunc_begin0
	.quad	.Ltmp153-.Lfunc_begin0
	.short	2
	.byte	113
	.byte	0
	.quad	.Ltmp156-.Lfunc_begin0
	.quad	.Ltmp158-.Lfunc_begin0
	.short	2
	.byte	113
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc11:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp64-.Lfunc_begin0
	.quad	.Ltmp117-.Lfunc_begin0
	.short	2
	.byte	126
	.byte	0
	.quad	.Ltmp141-.Lfunc_begin0
	.quad	.Ltmp179-.Lfunc_begin0
	.short	2
	.byte	126
	.byte	0
	.quad	.Ltmp181-.Lfunc_begin0
	.quad	.Ltmp207-.Lfunc_begin0
	.short	2
	.byte	126
	.byte	0
	.quad	.Ltmp208-.Lfunc_begin0
	.quad	.Ltmp232-.Lfunc_begin0
	.short	2
	.byte	126
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc12:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp65-.Lfunc_begin0
	.quad	.Ltmp82-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp141-.Lfunc_begin0
	.quad	.Ltmp144-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp146-.Lfunc_begin0
	.quad	.Ltmp149-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp151-.Lfunc_begin0
	.quad	.Ltmp154-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp156-.Lfunc_begin0
	.quad	.Ltmp159-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp160-.Lfunc_begin0
	.quad	.Ltmp162-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc13:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp66-.Lfunc_begin0
	.quad	.Ltmp115-.Lfunc_begin0
	.short	2
	.byte	115
	.byte	0
	.quad	.Ltmp141-.Lfunc_begin0
	.quad	.Ltmp179-.Lfunc_begin0
	.short	2
	.byte	115
	.byte	0
	.quad	.Ltmp181-.Lfunc_begin0
	.quad	.Ltmp207-.Lfunc_begin0
	.short	2
	.byte	115
	.byte	0
	.quad	.Ltmp208-.Lfunc_begin0
	.quad	.Ltmp232-.Lfunc_begin0
	.short	2
	.byte	115
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc14:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp67-.Lfunc_begin0
	.quad	.Ltmp88-.Lfunc_begin0
	.short	2
	.byte	120
	.byte	0
	.quad	.Ltmp141-.Lfunc_begin0
	.quad	.Ltmp145-.Lfunc_begin0
	.short	2
	.byte	120
	.byte	0
	.quad	.Ltmp146-.Lfunc_begin0
	.quad	.Ltmp150-.Lfunc_begin0
	.short	2
	.byte	120
	.byte	0
	.quad	.Ltmp151-.Lfunc_begin0
	.quad	.Ltmp155-.Lfunc_begin0
	.short	2
	.byte	120
	.byte	0
	.quad	.Ltmp156-.Lfunc_begin0
	.quad	.Ltmp163-.Lfunc_begin0
	.short	2
	.byte	120
	.byte	0
	.quad	.Ltmp164-.Lfunc_begin0
	.quad	.Ltmp168-.Lfunc_begin0
	.short	2
	.byte	120
	.byte	0
	.quad	.Ltmp169-.Lfunc_begin0
	.quad	.Ltmp171-.Lfunc_begin0
	.short	2
	.byte	120
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc15:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Lfunc_begin3-.Lfunc_begin0
	.quad	.Ltmp241-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp241-.Lfunc_begin0
	.quad	.Ltmp246-.Lfunc_begin0
	.short	1
	.byte	83
	.quad	.Ltmp246-.Lfunc_begin0
	.quad	.Ltmp250-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	85
	.byte	159
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	1
	.byte	83
	.quad	0
	.quad	0
.Ldebug_loc16:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Lfunc_begin3-.Lfunc_begin0
	.quad	.Ltmp242-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp242-.Lfunc_begin0
	.quad	.Ltmp245-.Lfunc_begin0
	.short	1
	.byte	94
	.quad	.Ltmp245-.Lfunc_begin0
	.quad	.Ltmp250-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Ltmp257-.Lfunc_begin0
	.short	1
	.byte	94
	.quad	.Ltmp257-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc17:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Lfunc_begin3-.Lfunc_begin0
	.quad	.Ltmp240-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp240-.Lfunc_begin0
	.quad	.Ltmp249-.Lfunc_begin0
	.short	1
	.byte	86
	.quad	.Ltmp249-.Lfunc_begin0
	.quad	.Ltmp250-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	1
	.byte	86
	.quad	0
	.quad	0
.Ldebug_loc18:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Lfunc_begin3-.Lfunc_begin0
	.quad	.Ltmp239-.Lfunc_begin0
	.short	1
	.byte	82
	.quad	.Ltmp239-.Lfunc_begin0
	.quad	.Ltmp247-.Lfunc_begin0
	.short	1
	.byte	93
	.quad	.Ltmp247-.Lfunc_begin0
	.quad	.Ltmp250-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	82
	.byte	159
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	1
	.byte	93
	.quad	0
	.quad	0
.Ldebug_loc19:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Lfunc_begin3-.Lfunc_begin0
	.quad	.Ltmp238-.Lfunc_begin0
	.short	1
	.byte	88
	.quad	.Ltmp238-.Lfunc_begin0
	.quad	.Ltmp248-.Lfunc_begin0
	.short	1
	.byte	95
	.quad	.Ltmp248-.Lfunc_begin0
	.quad	.Ltmp250-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	88
	.byte	159
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	1
	.byte	95
	.quad	0
	.quad	0
.Ldebug_loc20:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp237-.Lfunc_begin0
	.quad	.Ltmp238-.Lfunc_begin0
	.short	2
	.byte	120
	.byte	0
	.quad	.Ltmp238-.Lfunc_begin0
	.quad	.Ltmp248-.Lfunc_begin0
	.short	2
	.byte	127
	.byte	0
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	2
	.byte	127
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc21:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp237-.Lfunc_begin0
	.quad	.Ltmp239-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp239-.Lfunc_begin0
	.quad	.Ltmp247-.Lfunc_begin0
	.short	2
	.byte	125
	.byte	0
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	2
	.byte	125
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc22:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp237-.Lfunc_begin0
	.quad	.Ltmp240-.Lfunc_begin0
	.short	2
	.byte	113
	.byte	0
	.quad	.Ltmp240-.Lfunc_begin0
	.quad	.Ltmp249-.Lfunc_begin0
	.short	2
	.byte	118
	.byte	0
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	2
	.byte	118
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc23:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp237-.Lfunc_begin0
	.quad	.Ltmp242-.Lfunc_begin0
	.short	2
	.byte	116
	.byte	0
	.quad	.Ltmp242-.Lfunc_begin0
	.quad	.Ltmp245-.Lfunc_begin0
	.short	2
	.byte	126
	.byte	0
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Ltmp257-.Lfunc_begin0
	.short	2
	.byte	126
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc24:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp243-.Lfunc_begin0
	.quad	.Ltmp244-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	.Ltmp244-.Lfunc_begin0
	.quad	.Ltmp245-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp250-.Lfunc_begin0
	.quad	.Ltmp251-.Lfunc_begin0
	.short	2
	.byte	114
	.byte	0
	.quad	.Ltmp251-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	6
	.byte	119
	.byte	0
	.byte	148
	.byte	8
	.byte	6
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc25:
	.quad	-1
	.quad	.Lfunc_begin0
	.quad	.Ltmp252-.Lfunc_begin0
	.quad	.Ltmp254-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	.Ltmp255-.Lfunc_begin0
	.quad	.Ltmp256-.Lfunc_begin0
	.short	2
	.byte	112
	.byte	0
	.quad	.Ltmp256-.Lfunc_begin0
	.quad	.Lfunc_end3-.Lfunc_begin0
	.short	2
	.byte	124
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
	.byte	7
	.byte	15
	.byte	0
	.byte	0
	.byte	0
	.byte	8
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
	.byte	80
	.byte	34
	.long	.Linfo_string3

	.long	449
	.byte	3
	.long	.Linfo_string22
	.long	456
	.byte	4
	.long	.Ldebug_loc0
	.long	.Linfo_string6
	.long	456
	.byte	4
	.long	.Ldebug_loc1
	.long	.Linfo_string7
	.long	449
	.byte	3
	.long	.Linfo_string23
	.long	456
	.byte	5
	.long	.Ldebug_loc2
	.long	.Linfo_string8
	.long	449
	.byte	5
	.long	.Ldebug_loc3
	.long	.Linfo_string9
	.long	449
	.byte	5
	.long	.Ldebug_loc4
	.long	.Linfo_string10
	.long	449
	.byte	5
	.long	.Ldebug_loc5
	.long	.Linfo_string11
	.long	449
	.byte	5
	.long	.Ldebug_loc6
	.long	.Linfo_string12
	.long	457
	.byte	5
	.long	.Ldebug_loc7
	.long	.Linfo_string14
	.long	457
	.byte	5
	.long	.Ldebug_loc8
	.long	.Linfo_string15
	.long	449
	.byte	5
	.long	.Ldebug_loc9
	.long	.Linfo_string16
	.long	457
	.byte	5
	.long	.Ldebug_loc10
	.long	.Linfo_string17
	.long	457
	.byte	5
	.long	.Ldebug_loc11
	.long	.Linfo_string18
	.long	457
	.byte	5
	.long	.Ldebug_loc12
	.long	.Linfo_string19
	.long	457
	.byte	5
	.long	.Ldebug_loc13
	.long	.Linfo_string20
	.long	457
	.byte	5
	.long	.Ldebug_loc14
	.long	.Linfo_string21
	.long	457
	.byte	0
	.byte	2
	.quad	.Lfunc_begin3
	.long	.Lfunc_end3-.Lfunc_begin3
	.byte	1
	.byte	87
	.long	.Linfo_string5

	.long	449
	.byte	4
	.long	.Ldebug_loc15
	.long	.Linfo_string15
	.long	449
	.byte	4
	.long	.Ldebug_loc16
	.long	.Linfo_string24
	.long	469
	.byte	4
	.long	.Ldebug_loc17
	.long	.Linfo_string26
	.long	469
	.byte	4
	.long	.Ldebug_loc18
	.long	.Linfo_string27
	.long	469
	.byte	4
	.long	.Ldebug_loc19
	.long	.Linfo_string28
	.long	469
	.byte	5
	.long	.Ldebug_loc20
	.long	.Linfo_string28
	.long	469
	.byte	5
	.long	.Ldebug_loc21
	.long	.Linfo_string27
	.long	469
	.byte	5
	.long	.Ldebug_loc22
	.long	.Linfo_string26
	.long	469
	.byte	5
	.long	.Ldebug_loc23
	.long	.Linfo_string24
	.long	469
	.byte	5
	.long	.Ldebug_loc24
	.long	.Linfo_string29
	.long	481
	.byte	5
	.long	.Ldebug_loc25
	.long	.Linfo_string31
	.long	469
	.byte	0
	.byte	6
	.long	.Linfo_string4
	.byte	5
	.byte	4
	.byte	7
	.byte	8
	.long	462
	.byte	6
	.long	.Linfo_string13
	.byte	5
	.byte	8
	.byte	8
	.long	474
	.byte	6
	.long	.Linfo_string25
	.byte	4
	.byte	4
	.byte	8
	.long	486
	.byte	6
	.long	.Linfo_string30
	.byte	4
	.byte	64
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
	.asciz	"__tvm_ffi_fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7"
.Linfo_string4:
	.asciz	"int32"
.Linfo_string5:
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7_compute_"
.Linfo_string6:
	.asciz	"args"
.Linfo_string7:
	.asciz	"num_args"
.Linfo_string8:
	.asciz	"x.type_index"
.Linfo_string9:
	.asciz	"w_depth.type_index"
.Linfo_string10:
	.asciz	"w_point.type_index"
.Linfo_string11:
	.asciz	"relu.type_index"
.Linfo_string12:
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7.x_shape"
.Linfo_string13:
	.asciz	"int64"
.Linfo_string14:
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7.x_strides"
.Linfo_string15:
	.asciz	"dev_id"
.Linfo_string16:
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7.w_depth_shape"
.Linfo_string17:
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7.w_depth_strides"
.Linfo_string18:
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7.w_point_shape"
.Linfo_string19:
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7.w_point_strides"
.Linfo_string20:
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7.relu_shape"
.Linfo_string21:
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7.relu_strides"
.Linfo_string22:
	.asciz	"self_handle"
.Linfo_string23:
	.asciz	"result"
.Linfo_string24:
	.asciz	"x"
.Linfo_string25:
	.asciz	"float32"
.Linfo_string26:
	.asciz	"w_depth"
.Linfo_string27:
	.asciz	"w_point"
.Linfo_string28:
	.asciz	"relu"
.Linfo_string29:
	.asciz	"conv2d_framed"
.Linfo_string30:
	.asciz	"float32x16"
.Linfo_string31:
	.asciz	"conv2d_lanes"
	.section	.debug_pubnames,"",@progbits
	.long	.LpubNames_end0-.LpubNames_start0
.LpubNames_start0:
	.short	2
	.long	.Lcu_begin0
	.long	494
	.long	42
	.asciz	"__tvm_ffi_fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7"
	.long	282
	.asciz	"fused_relax_nn_conv2d_relax_nn_conv2d_relax_nn_relu_tefuse_mc4fcc5ea56a7_compute_"
	.long	0
.LpubNames_end0:
	.section	.debug_pubtypes,"",@progbits
	.long	.LpubTypes_end0-.LpubTypes_start0
.LpubTypes_start0:
	.short	2
	.long	.Lcu_begin0
	.long	494
	.long	449
	.asciz	"int32"
	.long	462
	.asciz	"int64"
	.long	474
	.asciz	"float32"
	.long	486
	.asciz	"float32x16"
	.long	0
.LpubTypes_end0:
	.section	".note.GNU-stack","",@progbits
	.section	.debug_line,"",@progbits
.Lline_table_start0:
