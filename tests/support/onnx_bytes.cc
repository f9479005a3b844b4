#include "support/onnx_bytes.h"

#include <cctype>
#include <cstring>

namespace paddle::testing_support {
namespace {

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

}  // namespace

std::string bytes_field(uint64_t number, const std::string& content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}

std::string number_field(uint64_t number, int64_t value) {
  return varint(number << 3) + varint(static_cast<uint64_t>(value));
}

std::string onnx_node(const std::string& type, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs,
                      const std::vector<std::string>& attributes, const std::string& domain) {
  std::string out;
  for (const std::string& i : inputs) out += bytes_field(1, i);
  for (const std::string& o : outputs) out += bytes_field(2, o);
  out += bytes_field(4, type);
  for (const std::string& a : attributes) out += bytes_field(5, a);
  if (!domain.empty()) out += bytes_field(7, domain);
  return out;
}

std::string int_attribute(const std::string& name, int64_t value) {
  return bytes_field(1, name) + number_field(3, value) + number_field(20, 2);
}

std::string float_attribute(const std::string& name, float value) {
  std::string out = bytes_field(1, name) + char(2 << 3 | 5);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
  return out + number_field(20, 1);
}

std::string ints_attribute(const std::string& name, const std::vector<int64_t>& values) {
  std::string out = bytes_field(1, name);
  for (const int64_t v : values) out += number_field(8, v);
  return out + number_field(20, 7);
}

std::string string_attribute(const std::string& name, const std::string& value) {
  return bytes_field(1, name) + bytes_field(4, value) + number_field(20, 3);
}

std::string graph_attribute(const std::string& name, const std::string& graph) {
  return bytes_field(1, name) + bytes_field(6, graph) + number_field(20, 5);
}

std::string onnx_tensor(const std::string& name, int type, const std::vector<int64_t>& dims,
                        const std::string& raw) {
  std::string out;
  for (const int64_t d : dims) out += number_field(1, d);
  return out + number_field(2, type) + bytes_field(8, name) + bytes_field(9, raw);
}

std::string onnx_int64s(const std::string& name, const std::vector<int64_t>& values) {
  std::string raw(values.size() * sizeof(int64_t), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return onnx_tensor(name, 7, {static_cast<int64_t>(values.size())}, raw);
}

std::string onnx_floats(const std::string& name, const std::vector<float>& values) {
  std::string raw(values.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return onnx_tensor(name, 1, {static_cast<int64_t>(values.size())}, raw);
}

std::string external_tensor(const std::string& name, const std::vector<int64_t>& dims,
                            const std::string& location) {
  std::string out;
  for (const int64_t d : dims) out += number_field(1, d);
  return out + number_field(2, 1) + bytes_field(8, name) +
         bytes_field(13, bytes_field(1, "location") + bytes_field(2, location)) +
         number_field(14, 1);
}

std::string value_info(const std::string& name, int type, const std::vector<std::string>& dims) {
  std::string shape;
  for (const std::string& d : dims) {
    const bool number = std::isdigit(static_cast<unsigned char>(d[0])) || d[0] == '-';
    shape += bytes_field(1, number ? number_field(1, std::stoll(d)) : bytes_field(2, d));
  }
  const std::string tensor = number_field(1, type) + bytes_field(2, shape);
  return bytes_field(1, name) + bytes_field(2, bytes_field(1, tensor));
}

std::string onnx_graph(const std::vector<std::string>& nodes,
                       const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs,
                       const std::vector<std::string>& initializers) {
  std::string out;
  for (const std::string& n : nodes) out += bytes_field(1, n);
  out += bytes_field(2, "graph");
  for (const std::string& t : initializers) out += bytes_field(5, t);
  for (const std::string& i : inputs) out += bytes_field(11, i);
  for (const std::string& o : outputs) out += bytes_field(12, o);
  return out;
}

std::string onnx_model(const std::string& graph, int64_t opset) {
  return number_field(1, 8) + bytes_field(7, graph) + bytes_field(8, number_field(2, opset));
}

}  // namespace paddle::testing_support
