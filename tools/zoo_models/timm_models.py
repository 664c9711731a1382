"""timm: networks that differ in kind."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

from .model import FULL, Made, Model, NotHere
from .vision import picture, torchvision

# name -> side of a small picture; 0 where windows or tables of positions fix the published one.
_CHOSEN = {
    "botnet26t_256": 0, "cait_xxs24_224": 0, "caformer_s18": 64, "coat_tiny": 0,
    "convmixer_768_32": 64, "convnextv2_atto": 64, "crossvit_tiny_240": 0, "cspdarknet53": 64,
    "davit_tiny": 64, "deit_tiny_patch16_224": 0, "dla34": 64, "dpn68": 64,
    "ecaresnet26t": 64, "edgenext_xx_small": 64, "efficientformer_l1": 0, "efficientvit_b0": 64,
    "eva02_tiny_patch14_224": 0, "fastvit_t8": 64, "focalnet_tiny_srf": 64, "ghostnet_100": 64,
    "gmlp_ti16_224": 0, "hardcorenas_a": 64, "hiera_tiny_224": 0, "hrnet_w18_small": 64,
    "inception_v4": 96, "lcnet_050": 64, "levit_128s": 0, "mambaout_femto": 64, "mixer_s32_224": 0,
    "mixnet_s": 64, "mobilenetv4_conv_small": 64, "mobileone_s0": 64, "mobilevit_xxs": 64,
    "mobilevitv2_050": 64, "nf_regnet_b0": 64, "pit_ti_224": 0, "poolformer_s12": 64,
    "pvt_v2_b0": 64, "regnetz_b16": 64, "repvgg_a0": 64, "res2net50_14w_8s": 64, "resmlp_12_224": 0,
    "resnest14d": 64, "rexnet_100": 64, "selecsls42b": 64, "sequencer2d_s": 0,
    "skresnet18": 64, "starnet_s1": 64, "swinv2_cr_tiny_224": 0, "tiny_vit_5m_224": 0,
    "twins_svt_small": 64, "visformer_tiny": 0, "volo_d1_224": 0, "xception41": 64,
    "xcit_nano_12_p16_224": 0,
}  # fmt: skip


def networks() -> list[Model]:
    """Those chosen above."""
    if find_spec("timm") is None:
        raise NotHere("timm is not installed")
    return [Model(name, "timm", partial(_network, name)) for name in _CHOSEN]


def _network(name: str, size: str) -> Made:
    torchvision()  # which timm imports
    import timm

    module = timm.create_model(name, pretrained=False)
    published = module.pretrained_cfg["input_size"][-1]
    side = published if size == FULL else _CHOSEN[name] or published
    return picture(module, side)
