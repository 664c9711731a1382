"""Model files that were damaged, and arrays: an error that says where, not a crash and not a number
that nobody wrote.
"""

import contextlib
import hashlib
import json
import os
import zipfile

import numpy as np
import onnx
import pytest
from onnx_models import FLOAT, INT64, dense, model, random, value

import selfbyoc
from selfbyoc import emit, from_onnx, op
from selfbyoc.__main__ import main
from selfbyoc.commands.model.run import _read as read_array
from selfbyoc.commands.model_file import imported
from selfbyoc.errors import DamagedFile, InputError, OutOfMemory
from selfbyoc.models.archive import check_archive
from selfbyoc.models.onnx.folding import contradiction
from selfbyoc.tvm import GENERATION, tvm

# ---- ONNX


def weight(proto):
    return proto.graph.initializer[0]


def shorter(proto):
    weight(proto).raw_data = weight(proto).raw_data[:-1]


def fewer_numbers(proto):
    found = onnx.numpy_helper.to_array(weight(proto)).ravel()
    weight(proto).ClearField("raw_data")
    weight(proto).float_data.extend(found[:-3])


def of_no_type(proto):
    weight(proto).data_type = 99


def of_a_negative_size(proto):
    weight(proto).dims[0] = -24


def in_an_attribute(proto):
    constant = onnx.helper.make_node("Constant", [], ["c"], value=weight(proto))
    constant.attribute[0].t.dims[1] = 32
    proto.graph.node.insert(0, constant)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (
            shorter,
            r"model\.graph\.initializer 'w', float\[24, 31\], has 2,975 bytes; expected 2,976",
        ),
        (fewer_numbers, r"'w', float\[24, 31\], has 741 numbers; expected 744"),
        (of_no_type, "'w' has elements of type 99, which ONNX has not"),
        (of_a_negative_size, r"'w' has the shape \[-24, 31\]"),
        (
            in_an_attribute,
            r"node\.attribute\.t 'w', float\[24, 32\], has 2,976 bytes; expected 3,072",
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_tensors_that_are_not_as_long_as_they_say(damage, text, tmp_path):
    proto = dense()
    damage(proto)
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(InputError, match=rf"m\.onnx is no ONNX model that can be read: .*{text}"):
        from_onnx(tmp_path / "m.onnx")
    with pytest.raises(InputError, match=f"the model is none of ONNX's: .*{text}"):
        from_onnx(proto)


def test_names_that_are_no_text(tmp_path):
    """protobuf hands them out as bytes, which TVM's frontends trip over."""
    data = dense().SerializeToString()
    assert data.count(b"y0") == 2
    (tmp_path / "m.onnx").write_bytes(data.replace(b"y0", b"y\xb0"))
    with pytest.raises(InputError, match=r"m\.onnx is no ONNX model that can be read"):
        from_onnx(tmp_path / "m.onnx")


def test_types_that_contradict_each_other():
    """Whose weights would not fit the 2 GB of a message are looked at too: without them."""
    proto = dense()
    assert contradiction(proto) == ""
    proto.graph.output[0].type.tensor_type.elem_type = INT64
    assert "y" in contradiction(proto)
    with pytest.raises(InputError, match="is no ONNX model that can be read: "):
        from_onnx(proto)


@pytest.mark.parametrize(("side", "code"), [("input", 0), ("input", 33), ("output", 65)])
def test_types_that_there_are_not(side, code):
    proto = dense()
    getattr(proto.graph, side)[0].type.tensor_type.elem_type = code
    text = f"{side} '.*' is of {'UNDEFINED' if code == 0 else f'type {code}'}; expected a tensor"
    with pytest.raises(InputError, match=text):
        from_onnx(proto)


def test_a_model_without_outputs():
    proto = dense()
    del proto.graph.output[:]
    with pytest.raises(InputError, match="has no outputs; expected one or more"):
        from_onnx(proto)


@pytest.fixture
def beside(tmp_path):
    """A model whose weights lie beside it, with their checksum."""
    path, file = tmp_path / "m.onnx", tmp_path / "w.bin"
    proto = dense()
    onnx.external_data_helper.convert_model_to_external_data(
        proto, location="w.bin", size_threshold=9
    )
    onnx.save(proto, path)
    proto = onnx.load(path, load_external_data=False)
    digest = hashlib.sha1(file.read_bytes()).hexdigest()
    weight(proto).external_data.add(key="checksum", value=digest)
    path.write_bytes(proto.SerializeToString())
    return path


def test_weights_beside_it_are_whole(beside):
    x = random(5, 24)
    mod, expected = from_onnx(beside), from_onnx(dense())
    found, wanted = (selfbyoc.build(each)(x)[0] for each in (mod, expected))
    np.testing.assert_array_equal(found, wanted)


def test_weights_beside_it_that_were_cut_off(beside):
    size = (beside.parent / "w.bin").stat().st_size
    os.truncate(beside.parent / "w.bin", 100)
    with pytest.raises(DamagedFile, match=rf"w\.bin is cut off: 100 of {size:,} bytes"):
        from_onnx(beside)


def test_weights_beside_it_that_are_others(beside):
    file = beside.parent / "w.bin"
    data = bytearray(file.read_bytes())
    data[1000] ^= 1
    file.write_bytes(data)
    with pytest.raises(
        DamagedFile, match=r"w\.bin is damaged: expected SHA-1 \w{40}, found \w{40}"
    ):
        from_onnx(beside)


def test_where_they_lie_is_said_by_known_keys(beside):
    """A damaged "offset" would be none, and other numbers the weights."""
    beside.write_bytes(beside.read_bytes().replace(b"checksum", b"cheqksum"))
    text = "external data of 'w': 'cheqksum' is none of location, offset, length, checksum"
    with pytest.raises(InputError, match=text):
        from_onnx(beside)


@pytest.mark.parametrize("name", ["../w.bin", "/w.bin"])
def test_weights_of_another_folder_are_refused(beside, name):
    """By the package onnx: nothing of them is read."""
    named(beside, name)
    with pytest.raises(InputError, match=r"m\.onnx is no ONNX model that can be read"):
        from_onnx(beside)


def named(path, name):
    proto = onnx.load(path, load_external_data=False)
    weight(proto).external_data[0].value = name
    path.write_bytes(proto.SerializeToString())


def test_weights_behind_a_link(beside):
    """onnx 1.18 follows it, later ones refuse it: first it is asked what it holds."""
    (beside.parent / "link.bin").symlink_to(beside.parent / "w.bin")
    named(beside, "link.bin")
    os.truncate(beside.parent / "w.bin", 100)
    with pytest.raises(DamagedFile, match=r"link\.bin is cut off: 100 of "):
        from_onnx(beside)


def test_more_memory_than_there_is():
    """What a bit of a pad makes of it: sound, and of 2**50 bytes."""
    nodes = [("Pad", ["x", "pads"], "p", {}), ("Softmax", ["p"], "s", {"axis": -1})]
    nodes.append(("Slice", ["s", "start", "stop"], "y", {}))
    constants = {"pads": [0, 0, 1 << 24, 1 << 24], "start": [0, 0], "stop": [2, 3]}
    named = {name: np.array(each) for name, each in constants.items()}
    ends = [value("x", FLOAT, 2, 5)], [value("y", FLOAT, 2, 3)]
    library = selfbyoc.build(from_onnx(model(nodes, *ends, **named)))
    for _ in range(2):
        with pytest.raises(OutOfMemory, match="needs more memory than there is") as raised:
            library(random(2, 5))
    assert isinstance(raised.value, MemoryError)


@pytest.mark.skipif(GENERATION == "relay", reason="0.17's frontend refuses pads of 32 bits")
@pytest.mark.parametrize("power", [57, 61])
def test_more_elements_than_a_computer_has_bytes(power):
    """Rows of a softmax, whose bytes turn over in 64 bits: a pass of TVM's ended the process."""
    nodes = [("Pad", ["x", "pads"], "p", {}), ("Softmax", ["p"], "y", {"axis": -1})]
    named = {"pads": np.array([1 << power, 0, 0, 1])}
    mod = from_onnx(model(nodes, [value("x", FLOAT, 2, 5)], [value("y", FLOAT, 3, 6)], **named))
    with pytest.raises(InputError, match="more elements than any computer has bytes"):
        selfbyoc.build(mod)


# ---- modules in TVM's JSON


def test_a_module_that_is_part_of_itself(tmp_path):
    """TVM 0.27 follows it until the stack ends; 0.17 says that it cannot read it."""
    mod = emit(lambda x: op.relu(x), {"x": ((5, 9), "float32")})
    data, path = json.loads(tvm.ir.save_json(mod)), tmp_path / "m.json"
    path.write_text(json.dumps(data))
    assert imported(path, ())
    kind, fields = {"relax": ("type", "data"), "relay": ("type_key", "attrs")}[GENERATION]
    call = next(n for n, node in enumerate(data["nodes"]) if node[kind].endswith("Call"))
    args = int(data["nodes"][call][fields]["args"])
    data["nodes"][args]["data"] = [call]
    path.write_text(json.dumps(data))
    words = {"relax": r"TVM's reader ended by Segmentation fault \(signal 11\)", "relay": ""}
    with pytest.raises(InputError, match=f"is no module in TVM's JSON: {words[GENERATION]}"):
        imported(path, ())


@pytest.mark.skipif(GENERATION == "relax", reason="0.27 looks at the types of fields")
@pytest.mark.parametrize("field", ["functions", "global_var_map_"])
def test_a_module_whose_functions_are_something_else(tmp_path, field):
    """0.17 reads it, and ends the process when it is asked for what is in there."""
    mod = emit(lambda x: op.relu(x), {"x": ((5, 9), "float32")})
    data, path = json.loads(tvm.ir.save_json(mod)), tmp_path / "m.json"
    (fields,) = (n["attrs"] for n in data["nodes"] if n["type_key"] == "IRModule")
    var = next(n for n, node in enumerate(data["nodes"]) if node["type_key"] == "GlobalVar")
    fields[field] = str(var)
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="is no module in TVM's JSON: TVM's reader ended by"):
        imported(path, ())


# ---- exported programs


@pytest.fixture
def archive(tmp_path):
    """As PyTorch writes them: with what larger archives need at their end."""
    path = tmp_path / "m.pt2"
    with pytest.MonkeyPatch.context() as patched, zipfile.ZipFile(path, "w") as file:
        patched.setattr(zipfile, "ZIP64_LIMIT", 100)
        file.writestr("m/weights", bytes(1000))
        file.writestr("m/model.json", b"{}" * 50)
        file.close()
    assert b"PK\x06\x07" in path.read_bytes()
    check_archive(path, "exported program")
    return path


def test_an_archive_cut_at_any_length(archive):
    for length in reversed(range(archive.stat().st_size)):
        os.truncate(archive, length)
        with pytest.raises(
            DamagedFile, match=rf"m\.pt2 is (cut off: {length:,} bytes, |damaged: )"
        ):
            check_archive(archive, "exported program")


def test_every_bit_of_its_directory(archive):
    """Some say that it goes on in another file, or how far before its end it begins."""
    good = archive.read_bytes()
    for place in range(good.index(b"PK\x01\x02"), len(good)):
        for bit in (0, 7):
            archive.write_bytes(good[:place] + bytes([good[place] ^ 1 << bit]) + good[place + 1 :])
            with contextlib.suppress(DamagedFile):
                check_archive(archive, "exported program")


def test_a_member_that_is_another(archive):
    data = bytearray(archive.read_bytes())
    data[500] ^= 4
    archive.write_bytes(data)
    with pytest.raises(
        DamagedFile, match=r"m\.pt2 is damaged: m/weights differs from its checksum"
    ):
        check_archive(archive, "exported program")


def test_what_is_no_archive(tmp_path):
    (tmp_path / "m.pt2").write_bytes(b"text")
    with pytest.raises(
        InputError, match=r"m\.pt2 is no exported program: expected an archive"
    ) as err:
        check_archive(tmp_path / "m.pt2", "exported program")
    assert err.type is InputError


@pytest.mark.skipif(GENERATION == "relay", reason="reads no exported programs")
def test_an_exported_program_that_was_damaged(tmp_path, capsys):
    """PyTorch itself compares no checksums: another weight would be another result."""
    torch = pytest.importorskip("torch")
    net, path = torch.nn.Linear(9, 7).eval(), tmp_path / "m.pt2"
    torch.export.save(torch.export.export(net, (torch.ones(5, 9),)), path)
    with zipfile.ZipFile(path) as file:
        stored = next(i for i in file.infolist() if i.file_size == 9 * 7 * 4)
    data = bytearray(path.read_bytes())
    place = data.index(net.weight.detach().numpy().tobytes())
    data[place + 5] ^= 64
    path.write_bytes(data)
    assert main(["show", str(path)]) == 1
    expected = f"error: {path} is damaged: {stored.filename} differs from its checksum\n"
    assert capsys.readouterr() == ("", expected)
    os.truncate(path, 3000)
    assert main(["compile", str(path), "-o", str(tmp_path / "m.so")]) == 1
    assert capsys.readouterr().err.startswith(f"error: {path} is cut off: 3,000 bytes")


# ---- arrays that `run` reads


def test_an_array_that_was_damaged(tmp_path):
    """NumPy's header is Python, of which damage makes errors of the tokenizer, too."""
    path, errors = tmp_path / "x.npy", 0
    np.save(path, np.ones((3, 5), "float32"))
    good = path.read_bytes()
    for place in range(128):
        others = [bytes([good[place] ^ 1 << bit]) for bit in (0, 4, 6)] + [b"("]
        for damaged in (good[:place], *(good[:place] + c + good[place + 1 :] for c in others)):
            path.write_bytes(damaged)
            errors += is_refused(path)
    assert errors > 200


def is_refused(path):
    """Whether it cannot be read, in words of ours."""
    try:
        read_array(path)
    except InputError as err:
        return f"{path} is no .npy file that can be read: " in str(err)
    return False
