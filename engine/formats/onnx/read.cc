#include <algorithm>
#include <set>

#include "base/files.h"
#include "formats/generated/onnx/wire.pb.h"
#include "formats/onnx/model.h"
#include "formats/onnx/order.h"
#include "formats/onnx/payloads.h"
#include "formats/onnx/tensors.h"

namespace paddle::formats::onnx {

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

std::string ValueType::text() const {
  switch (kind) {
    case Kind::kTensor:
    case Kind::kSparse:
      return str(kind == Kind::kSparse ? "sparse " : "", dtype ? paddle::text(*dtype) : "any type",
                 shape ? paddle::text(*shape) : "[...]");
    case Kind::kSequence:
      return "sequence of " + (element ? element->text() : "anything");
    case Kind::kOptional:
      return "optional " + (element ? element->text() : "value");
    case Kind::kMap:
      return "map";
    case Kind::kUnknown:
      break;
  }
  return "anything";
}

std::string symbol_of(const std::string& name) {
  std::string clean;
  for (const char c : name) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    clean += good ? c : '_';
  }
  return clean.empty() || std::isdigit(static_cast<unsigned char>(clean[0])) ? "d" + clean : clean;
}

namespace {

template <class Field>
std::vector<std::string> strings_of(const Field& field) {
  return {field.begin(), field.end()};
}

class ModelReader {
 public:
  ModelReader(const std::string& path, ErrorCode code)
      : path_(path),
        file_(MappedFile::open(path, code)),
        tensors_(file_, folder_of(path), code),
        code_(code) {}

  template <class Message>
  Message parse(MessageKind kind, const char* what) {
    const std::string slim = without_payloads(file_->view(), kind, path_);
    Message message;
    if (!message.ParseFromString(slim)) fail(code_, path_, ": not a readable ", what);
    return message;
  }

  Model model() {
    const auto m = parse<onnx_wire::Model>(MessageKind::kModel, "ONNX model");
    if (!m.has_graph()) fail(code_, path_, ": not an ONNX model: it has no graph");
    Model out;
    out.path = path_;
    out.producer =
        m.producer_name() + (m.producer_version().empty() ? "" : " ") + m.producer_version();
    out.ir_version = m.ir_version();
    out.opsets = opsets(m.opset_import());
    if (out.opsets.empty()) out.opsets[""] = 1;
    out.graph = graph(m.graph());
    for (const auto& f : m.functions()) out.functions.push_back(function(f));
    return out;
  }

  ValueData value(const ValueType& type) {
    switch (type.kind) {
      case ValueType::Kind::kSequence:
        return sequence(parse<onnx_wire::Sequence>(MessageKind::kSequence, "ONNX sequence"));
      case ValueType::Kind::kOptional:
        return optional(parse<onnx_wire::Optional>(MessageKind::kOptional, "ONNX optional"));
      case ValueType::Kind::kTensor:
      case ValueType::Kind::kUnknown:
        return tensor_value(parse<onnx_wire::Tensor>(MessageKind::kTensor, "ONNX tensor"));
      default:
        fail(code_, path_, ": values of the type ", type, " are not supported");
    }
  }

 private:
  static std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  }

  template <class Field>
  std::map<std::string, int64_t> opsets(const Field& imports) {
    std::map<std::string, int64_t> out;
    for (const auto& o : imports) out[domain(o.domain())] = o.version();
    return out;
  }
  static std::string domain(const std::string& name) { return name == "ai.onnx" ? "" : name; }

  ValueType tensor_type(const onnx_wire::Type::TensorType& m, ValueType::Kind kind) {
    ValueType out;
    out.kind = kind;
    if (m.elem_type() != 0) {
      out.dtype = dtype_of_number(m.elem_type());
      if (!out.dtype) fail(code_, path_, ": the element type ", m.elem_type(), " is not supported");
    }
    if (m.has_shape()) {
      out.shape.emplace();
      for (const auto& d : m.shape().dim()) {
        // Some exporters write -1 for an unknown size.
        if (d.has_dim_value() && d.dim_value() < -1)
          fail(code_, path_, ": a declared shape has the negative size ", d.dim_value());
        if (d.has_dim_value() && d.dim_value() >= 0)
          out.shape->push_back(Dim(d.dim_value()));
        else if (!d.dim_param().empty())
          out.shape->push_back(Dim::symbol(symbol_of(d.dim_param())));
        else
          out.shape->push_back(Dim::unknown());
      }
    }
    return out;
  }

  ValueType type(const onnx_wire::Type& m) {
    ValueType out;
    if (m.has_tensor_type()) return tensor_type(m.tensor_type(), ValueType::Kind::kTensor);
    if (m.has_sparse_tensor_type())
      return tensor_type(m.sparse_tensor_type(), ValueType::Kind::kSparse);
    if (m.has_sequence_type()) {
      out.kind = ValueType::Kind::kSequence;
      out.element = std::make_shared<ValueType>(type(m.sequence_type().elem_type()));
    } else if (m.has_optional_type()) {
      out.kind = ValueType::Kind::kOptional;
      out.element = std::make_shared<ValueType>(type(m.optional_type().elem_type()));
    } else if (m.has_map_type()) {
      out.kind = ValueType::Kind::kMap;
    }
    return out;
  }

  ValueInfo value_info(const onnx_wire::ValueInfo& m) { return {m.name(), type(m.type())}; }

  Attribute attribute(const onnx_wire::Attribute& m) {
    Attribute out;
    out.name = m.name();
    out.reference = m.ref_attr_name();
    out.kind = static_cast<AttributeKind>(std::clamp(m.type(), 0, 14));
    if (m.type() == 0) out.kind = kind_by_content(m);
    out.f = m.f();
    out.i = m.i();
    out.s = m.s();
    out.floats.assign(m.floats().begin(), m.floats().end());
    out.ints.assign(m.ints().begin(), m.ints().end());
    out.strings = strings_of(m.strings());
    if (m.has_t()) out.tensors.push_back(tensors_.read(m.t()));
    for (const auto& t : m.tensors()) out.tensors.push_back(tensors_.read(t));
    if (m.has_g()) out.graphs.push_back(std::make_shared<Graph>(graph(m.g())));
    for (const auto& g : m.graphs()) out.graphs.push_back(std::make_shared<Graph>(graph(g)));
    if (m.has_sparse_tensor())
      out.sparse = std::make_shared<SparseData>(tensors_.read(m.sparse_tensor()));
    if (m.has_tp()) out.type = type(m.tp());
    return out;
  }

  /// Files of the first IR versions omit the attribute type.
  static AttributeKind kind_by_content(const onnx_wire::Attribute& m) {
    if (m.has_f()) return AttributeKind::kFloat;
    if (m.has_i()) return AttributeKind::kInt;
    if (m.has_s()) return AttributeKind::kString;
    if (m.has_t()) return AttributeKind::kTensor;
    if (m.has_g()) return AttributeKind::kGraph;
    if (m.floats_size() > 0) return AttributeKind::kFloats;
    if (m.ints_size() > 0) return AttributeKind::kInts;
    if (m.strings_size() > 0) return AttributeKind::kStrings;
    return AttributeKind::kUndefined;
  }

  Node node(const onnx_wire::Node& m) {
    Node out;
    out.name = m.name();
    out.op_type = m.op_type();
    out.domain = domain(m.domain());
    out.overload = m.overload();
    out.inputs = strings_of(m.input());
    out.outputs = strings_of(m.output());
    for (const auto& a : m.attribute()) out.attributes.push_back(attribute(a));
    return out;
  }

  Graph graph(const onnx_wire::Graph& m) {
    Graph out;
    out.name = m.name();
    std::set<std::string> names;
    for (const auto& t : m.initializer()) {
      if (!names.insert(t.name()).second)
        fail(code_, path_, ": two initializers are called '", t.name(), "'");
      out.initializers.push_back(tensors_.read(t));
    }
    for (const auto& s : m.sparse_initializer())
      out.sparse_initializers.emplace_back(s.values().name(), tensors_.read(s));
    for (const auto& n : m.node()) out.nodes.push_back(node(n));
    sort_nodes(out.nodes);
    for (const auto& v : m.input()) out.inputs.push_back(value_info(v));
    for (const auto& v : m.output()) out.outputs.push_back(value_info(v));
    for (const auto& v : m.value_info()) out.values.push_back(value_info(v));
    return out;
  }

  Function function(const onnx_wire::Function& m) {
    Function out;
    out.name = m.name();
    out.domain = domain(m.domain());
    out.overload = m.overload();
    out.inputs = strings_of(m.input());
    out.outputs = strings_of(m.output());
    out.attributes = strings_of(m.attribute());
    for (const auto& a : m.attribute_proto()) out.defaults.push_back(attribute(a));
    for (const auto& n : m.node()) out.nodes.push_back(node(n));
    sort_nodes(out.nodes);
    out.opsets = opsets(m.opset_import());
    return out;
  }

  ValueData tensor_value(const onnx_wire::Tensor& m) {
    ValueData out;
    out.tensor = tensors_.read(m);
    return out;
  }
  ValueData sequence(const onnx_wire::Sequence& m) {
    ValueData out;
    out.kind = ValueType::Kind::kSequence;
    for (const auto& t : m.tensor_values()) out.elements.push_back(tensor_value(t));
    for (const auto& s : m.sequence_values()) out.elements.push_back(sequence(s));
    for (const auto& o : m.optional_values()) out.elements.push_back(optional(o));
    return out;
  }
  ValueData optional(const onnx_wire::Optional& m) {
    ValueData out;
    out.kind = ValueType::Kind::kOptional;
    if (m.elem_type() == 1 && m.has_tensor_value())
      out.elements.push_back(tensor_value(m.tensor_value()));
    else if (m.elem_type() == 3 && m.has_sequence_value())
      out.elements.push_back(sequence(m.sequence_value()));
    else if (m.elem_type() == 5 && m.has_optional_value())
      out.elements.push_back(optional(m.optional_value()));
    return out;
  }

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  TensorReader tensors_;
  ErrorCode code_;
};

}  // namespace

Model read_model(const std::string& path) { return ModelReader(path, ErrorCode::kModel).model(); }

ValueData read_value(const std::string& path, const ValueType& type) {
  return ModelReader(path, ErrorCode::kData).value(type);
}

}  // namespace paddle::formats::onnx
