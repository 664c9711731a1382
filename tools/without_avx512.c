/* A process that takes this machine for one without AVX-512: preload it, and every library that asks
 * the CPU what it can do (ONNX Runtime, OpenVINO, PyTorch, NumPy) picks its AVX2 code.
 *
 *     cc -O1 -shared -fPIC -o build/without_avx512.so tools/without_avx512.c -ldl
 *     SELFBYOC_CPU=haswell LD_PRELOAD=build/without_avx512.so python -m selfbyoc bench --sweep
 *
 * Linux lets a process trap its CPUID instructions (arch_prctl(2), ARCH_SET_CPUID; threads and
 * children inherit it). The trap is a SIGSEGV, which is answered here with the CPU's own answer less
 * AVX-512 and AMX, and the name and the model of a Haswell server. A program's own handler of that
 * signal is kept, and gets what is no CPUID. selfbyoc reads /proc/cpuinfo and needs SELFBYOC_CPU.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012
#define HASWELL_MODEL 0x000306f2u

typedef int (*sigaction_fn)(int, const struct sigaction *, struct sigaction *);
typedef void (*handler_fn)(int);

static const char NAME[48] = "Haswell (AVX-512 hidden by without_avx512.c)";
static sigaction_fn next_sigaction;
static struct sigaction programs; /* the program's own handler */

static long let_run(int how) { return syscall(SYS_arch_prctl, ARCH_SET_CPUID, how); }

static void hide(unsigned leaf, unsigned sub, unsigned r[4]) {
  if (leaf == 1) r[0] = (r[0] & ~0x0fff0fffu) | HASWELL_MODEL;
  if (leaf == 7 && sub == 0) {
    r[1] &= ~(1u << 16 | 1u << 17 | 1u << 21 | 0xdu << 28 | 7u << 26);  /* F DQ IFMA PF ER CD BW VL */
    r[2] &= ~(1u << 1 | 1u << 6 | 3u << 11 | 1u << 14);                  /* VBMI VBMI2 VNNI BITALG VPOPCNTDQ */
    r[3] &= ~(3u << 2 | 1u << 8 | 0xfu << 22);                           /* 4VNNIW VP2INTERSECT AMX FP16 */
  }
  if (leaf == 7 && sub == 1) r[0] &= ~(3u << 4); /* AVX-VNNI, BF16 */
  if (leaf == 0xd && sub == 0) r[0] &= 7;        /* states to save: x87, SSE, AVX */
  if (leaf - 0x80000002u < 3) memcpy(r, NAME + 16 * (leaf - 0x80000002u), 16);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
  greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *at = (const unsigned char *)regs[REG_RIP];
  if (info->si_code == SI_KERNEL && at[0] == 0x0f && at[1] == 0xa2) {
    unsigned leaf = regs[REG_RAX], sub = regs[REG_RCX], r[4];
    let_run(1);
    __asm__ volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(sub));
    let_run(0);
    hide(leaf, sub, r);
    regs[REG_RAX] = r[0], regs[REG_RBX] = r[1], regs[REG_RCX] = r[2], regs[REG_RDX] = r[3];
    regs[REG_RIP] += 2;
  } else if (programs.sa_handler == SIG_DFL || programs.sa_handler == SIG_IGN) {
    struct sigaction plain = {.sa_handler = SIG_DFL};
    next_sigaction(SIGSEGV, &plain, NULL);
  } else if (programs.sa_flags & SA_SIGINFO) {
    programs.sa_sigaction(signal, info, context);
  } else {
    programs.sa_handler(signal);
  }
}

int sigaction(int signal, const struct sigaction *new, struct sigaction *old) {
  if (!next_sigaction) next_sigaction = (sigaction_fn)dlsym(RTLD_NEXT, "sigaction");
  if (signal != SIGSEGV) return next_sigaction(signal, new, old);
  if (old) *old = programs;
  if (new) programs = *new;
  return 0;
}

handler_fn signal(int signal, handler_fn handler) {
  struct sigaction new = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
  return sigaction(signal, &new, &old) ? SIG_ERR : old.sa_handler;
}

__attribute__((constructor)) static void start(void) {
  struct sigaction trap = {
      .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  if (!next_sigaction) next_sigaction = (sigaction_fn)dlsym(RTLD_NEXT, "sigaction");
  next_sigaction(SIGSEGV, &trap, NULL);
  if (let_run(0)) {
    perror("without_avx512: this CPU or kernel cannot trap CPUID");
    _exit(1);
  }
}
