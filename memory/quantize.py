"""Let a model whose weights are whole numbers also multiply by them.

The default embedder's file keeps each weight as int8 with a scale, turns it into a float, and
multiplies floats: small on disk, and no faster. onnxruntime's DynamicQuantizeMatMul takes the same
int8 and multiplies whole numbers. The file is rewritten in memory, on the wire format of protobuf
(https://protobuf.dev/programming-guides/encoding), so that no package need read ONNX.
"""

from collections.abc import Iterable, Iterator

type Value = int | bytes
type Field = tuple[int, int, Value]  # number, wire type, content

VARINT, BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
# Fields of ONNX' messages (onnx.proto): of a model, a graph, a node, a tensor, a set of operators.
GRAPH, OPERATORS = 7, 8
NODE, TENSOR = 1, 5
INPUT, OUTPUT, NAME, OPERATOR, DOMAIN = 1, 2, 3, 4, 7
DIMS, TENSOR_NAME = 1, 8
SET_DOMAIN, SET_VERSION = 1, 2

ONNXRUNTIME = b"com.microsoft"


def in_whole_numbers(model: bytes) -> bytes:
    """Return the model with each multiplication by a scaled int8 weight done in whole numbers.

    Such a one is MatMul(x, Mul(Cast(weight), scale)) with one scale for each column. What has
    another form stays as it is.
    """
    fields = list(_read(model))
    graph = next(_bytes(value) for number, _wire, value in fields if number == GRAPH)
    rewritten = _rewritten(list(_read(graph)))
    fields = [(n, wire, rewritten if n == GRAPH else value) for n, wire, value in fields]
    used = _written([(SET_DOMAIN, BYTES, ONNXRUNTIME), (SET_VERSION, VARINT, 1)])
    return _written([*fields, (OPERATORS, BYTES, used)])


def _rewritten(graph: list[Field]) -> bytes:
    nodes = [list(_read(_bytes(value))) for number, _wire, value in graph if number == NODE]
    made_by = {output: node for node in nodes for output in _all(node, OUTPUT)}
    scales: set[Value] = set()
    fields: list[Field] = []
    for number, wire, value in graph:
        node = list(_read(_bytes(value))) if number == NODE else []
        scaled = _scaled_weight(node, made_by) if node else None
        if scaled is None:
            fields.append((number, wire, value))
            continue
        scales.add(scaled[1])
        taken = [(INPUT, BYTES, name) for name in (_all(node, INPUT)[0], *scaled)]
        kept = [one for one in node if one[0] in {OUTPUT, NAME}]
        called = [(OPERATOR, BYTES, b"DynamicQuantizeMatMul"), (DOMAIN, BYTES, ONNXRUNTIME)]
        fields.append((NODE, BYTES, _written([*taken, *kept, *called])))
    return _written(_flat(field, scales) for field in fields)


def _scaled_weight(
    node: list[Field], made_by: dict[Value, list[Field]]
) -> tuple[Value, Value] | None:
    """Return the names of the int8 weight and of its scale that a MatMul multiplies by, if so."""
    if _all(node, OPERATOR) != [b"MatMul"]:
        return None
    product = made_by.get(_all(node, INPUT)[1], [])
    if _all(product, OPERATOR) != [b"Mul"]:
        return None
    cast, scale = _all(product, INPUT)
    turned = made_by.get(cast, [])
    if _all(turned, OPERATOR) != [b"Cast"] or scale in made_by:
        return None
    return _all(turned, INPUT)[0], scale


def _flat(field: Field, scales: set[Value]) -> Field:
    """Return a tensor that is a scale of shape (1, columns) as one of shape (columns)."""
    number, wire, value = field
    if number != TENSOR:
        return field
    tensor = list(_read(_bytes(value)))
    if not scales & set(_all(tensor, TENSOR_NAME)):
        return field
    columns = _dims(tensor)[-1]
    rest = [one for one in tensor if one[0] != DIMS]
    return number, wire, _written([(DIMS, VARINT, columns), *rest])


def _dims(tensor: list[Field]) -> list[int]:
    dims: list[int] = []
    for number, _wire, value in tensor:
        if number == DIMS and isinstance(value, int):
            dims.append(value)
        elif number == DIMS:  # packed: one number behind the other
            packed, at = _bytes(value), 0
            while at < len(packed):
                dim, at = _number(packed, at)
                dims.append(dim)
    return dims


def _all(fields: Iterable[Field], wanted: int) -> list[Value]:
    return [value for number, _wire, value in fields if number == wanted]


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("this file is no ONNX model")
    return value


def _read(message: bytes) -> Iterator[Field]:
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        number, wire = key >> 3, key & 7
        value: Value
        if wire == VARINT:
            value, at = _number(message, at)
        else:
            length, at = _number(message, at) if wire == BYTES else (_FIXED[wire], at)
            value, at = message[at : at + length], at + length
        yield number, wire, value


def _number(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _written(fields: Iterable[Field]) -> bytes:
    parts: list[bytes] = []
    for number, wire, value in fields:
        parts.append(_varint(number << 3 | wire))
        if isinstance(value, int):
            parts.append(_varint(value))
        else:
            parts += [_varint(len(value)), value] if wire == BYTES else [value]
    return b"".join(parts)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])
