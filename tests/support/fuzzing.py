"""What the tests of the fuzzer share: composites with a fault, and attempts by script."""

from pathlib import Path

from selfbyoc.commands.fuzz.attempt import Setting

HERE = Path(__file__).parent


def faulty(folder, fault):
    """A file that declares one composite with a fault."""
    text = (HERE / "faulty_composites.py").read_text(encoding="utf-8")
    path = folder / f"{fault}.py"
    path.write_text(f'{text}\n\nchosen = TABLE["{fault}"]\n', encoding="utf-8")
    return path


class Scripted:
    """Of a judge: its worker process gives these answers instead of running."""

    def __init__(self, *answers):
        super().__init__(Setting(), 1.0)
        self.answers = list(answers)

    def _call(self, function, *args):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer
