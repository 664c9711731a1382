"""The CPUs: how TVM is told of each, and whose scheduling model llvm-mca has for it."""

from __future__ import annotations

from dataclasses import dataclass

from selfbyoc.errors import TargetError
from selfbyoc.machine.features import check_cpu
from selfbyoc.tvm import tvm

X86, ARM = "x86_64-linux-gnu", "aarch64-linux-gnu"


@dataclass(frozen=True)
class CPU:
    """`model`: whose scheduling model LLVM 19 takes for this CPU, where that is another's."""

    name: str
    triple: str = X86
    model: str = ""

    @property
    def is_arm(self) -> bool:
        """Whether it runs AArch64 code, which this project's machines do not."""
        return self.triple == ARM

    @property
    def target(self) -> str:
        """The target as TVM takes it."""
        if self.is_arm:
            return f"llvm -mtriple={ARM} -mcpu={self.name} -mattr=+neon"
        return f"llvm -mcpu={self.name}"


CPUS = (
    CPU("x86-64", model="sandybridge"),  # SSE2: what every x86-64 has
    CPU("haswell"), CPU("znver2"), CPU("znver3"), CPU("alderlake"),
    CPU("skylake-avx512"), CPU("cascadelake", model="skylake-avx512"), CPU("icelake-server"),
    CPU("sapphirerapids"), CPU("znver4"), CPU("znver5", model="znver4"),
    CPU("cortex-a72", ARM, model="cortex-a57"), CPU("neoverse-n1", ARM), CPU("neoverse-v2", ARM),
    CPU("apple-m1", ARM, model="cyclone"),
)  # fmt: skip
BY_NAME = {cpu.name: cpu for cpu in CPUS}


def is_known(cpu: CPU) -> bool:
    """Whether this TVM's LLVM knows the name."""
    try:
        check_cpu(cpu.target)
    except TargetError:
        return False
    return True


def llvm_version() -> int:
    """The major version of this TVM's LLVM."""
    return int(tvm.target.codegen.llvm_version_major())
