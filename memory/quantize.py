"""Let a model whose weights are whole numbers also multiply by them.

The default embedder's file keeps each weight as int8 with a scale, turns it into a float, and
multiplies floats: small on disk, and no faster. onnxruntime's DynamicQuantizeMatMul (of its
com.microsoft operators) takes the same int8 and multiplies whole numbers.
"""

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # only the process that loads a model needs it
    from onnx import NodeProto

ONNXRUNTIME = "com.microsoft"


def in_whole_numbers(model: bytes) -> bytes:
    """Return the ONNX model with each multiplication by a scaled int8 weight in whole numbers.

    Such a one is MatMul(x, Mul(Cast(weight), scale)) with one scale for each column. What has
    another form stays as it is. Raises what `onnx` raises for bytes that are no model.
    """
    import onnx
    from onnx import helper

    rewritten = onnx.load_model_from_string(model)
    graph = rewritten.graph
    made_by = {output: node for node in graph.node for output in node.output}
    scales: set[str] = set()
    for node in graph.node:
        scaled = _scaled_weight(node, made_by)
        if scaled is None:
            continue
        scales.add(scaled[1])
        inputs, outputs = [node.input[0], *scaled], list(node.output)
        node.CopyFrom(
            helper.make_node(
                "DynamicQuantizeMatMul", inputs, outputs, name=node.name, domain=ONNXRUNTIME
            )
        )
    for tensor in graph.initializer:
        if tensor.name in scales:  # of shape (1, columns); wanted is (columns)
            tensor.dims[:] = tensor.dims[-1:]
    if scales:
        rewritten.opset_import.append(helper.make_opsetid(ONNXRUNTIME, 1))
    return cast("bytes", rewritten.SerializeToString())


def _scaled_weight(node: "NodeProto", made_by: "dict[str, NodeProto]") -> tuple[str, str] | None:
    """Return the names of the int8 weight and of its scale that a MatMul multiplies by, if so."""
    if node.op_type != "MatMul":
        return None
    product = made_by.get(node.input[1])
    if product is None or product.op_type != "Mul":
        return None
    cast, scale = product.input
    turned = made_by.get(cast)
    if turned is None or turned.op_type != "Cast" or scale in made_by:
        return None
    return turned.input[0], scale
