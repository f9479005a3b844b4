#pragma once
// Writes ONNX files for tests, byte by byte, so that they can also be wrong.

#include <cstdint>
#include <string>
#include <vector>

namespace paddle::testing_support {

/// A field of a protobuf message that holds bytes: a string or a message.
std::string bytes_field(uint64_t number, const std::string& content);
std::string number_field(uint64_t number, int64_t value);

/// A node; attributes come as finished messages (see `attribute`).
std::string onnx_node(const std::string& type, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs,
                      const std::vector<std::string>& attributes = {},
                      const std::string& domain = "");
std::string int_attribute(const std::string& name, int64_t value);
std::string float_attribute(const std::string& name, float value);
std::string string_attribute(const std::string& name, const std::string& value);
std::string ints_attribute(const std::string& name, const std::vector<int64_t>& values);
std::string graph_attribute(const std::string& name, const std::string& graph);
/// A tensor with its elements as raw bytes; `type` is the number in ONNX's table (1: float32).
std::string onnx_tensor(const std::string& name, int type, const std::vector<int64_t>& dims,
                        const std::string& raw);
std::string onnx_int64s(const std::string& name, const std::vector<int64_t>& values);
std::string onnx_floats(const std::string& name, const std::vector<float>& values);
/// A tensor whose elements lie in another file.
std::string external_tensor(const std::string& name, const std::vector<int64_t>& dims,
                            const std::string& location);
/// A value's name and type; a dim is a number or a symbol.
std::string value_info(const std::string& name, int type, const std::vector<std::string>& dims);
std::string onnx_graph(const std::vector<std::string>& nodes,
                       const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs,
                       const std::vector<std::string>& initializers = {});
std::string onnx_model(const std::string& graph, int64_t opset = 17);

}  // namespace paddle::testing_support
