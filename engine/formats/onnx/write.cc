#include "formats/onnx/write.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <memory>
#include <variant>

#include "base/files.h"

namespace paddle::formats::onnx {
namespace {

/// The largest protobuf message, less some room for what is not weights.
constexpr uint64_t kMaxModelBytes = (uint64_t{1} << 31) - (uint64_t{1} << 16);
/// Smaller tensors stay in the model even when weights are external.
constexpr uint64_t kMinExternal = 1024;
/// Offsets in the data file; page-aligned data can be mapped.
constexpr uint64_t kDataAlignment = 4096;

/// The value of a weight by its name.
using WeightValue = std::function<Array(const std::string& weight)>;

/// The elements of an array in a type, read and converted when they are written.
class Payload {
 public:
  /// `weight` names what the elements are, if the array does not have them.
  Payload(const Array& array, DType dtype, std::string weight)
      : array_(array.contiguous()), dtype_(dtype), weight_(std::move(weight)) {}
  uint64_t size() const { return static_cast<uint64_t>(storage_bytes(dtype_, array_.size())); }
  void write(AtomicFile& file, const WeightValue& value) const {
    if (size() == 0) return;
    const Array elements = weight_.empty() ? array_ : read(value);
    if (elements.dtype != dtype_) {
      const Array stored = elements.cast(dtype_);
      write_bytes(file, stored.raw());
    } else {
      // Wherever a file has them: no aligned copy is needed.
      write_bytes(file, elements.offset == 0 ? elements.storage->source() : elements.raw());
    }
    forget_mapped(elements.storage->source(), elements.storage->bytes());
  }

 private:
  Array read(const WeightValue& value) const {
    ensure(value != nullptr, "nothing gives the value of the weight '", weight_, "'");
    Array out = value(weight_).contiguous();
    if (out.dtype != array_.dtype || out.shape != array_.shape)
      fail(ErrorCode::kModel, "the weight '", weight_, "' is ", text(out.dtype), str(out.shape),
           ", the model needs ", text(array_.dtype), str(array_.shape));
    return out;
  }
  /// In pieces, so that only a few pages of a mapped file are in memory.
  void write_bytes(AtomicFile& file, const void* from) const {
    constexpr size_t kPiece = size_t{8} << 20;
    const auto* const bytes = static_cast<const std::byte*>(from);
    for (size_t at = 0; at < size(); at += kPiece) {
      const size_t count = std::min(kPiece, static_cast<size_t>(size()) - at);
      file.write(bytes + at, count);
      forget_mapped(bytes + at, count);
    }
  }

  Array array_;
  DType dtype_;
  std::string weight_;
};

/// The payloads of the data file with their offsets.
class ExternalData {
 public:
  /// The offset of a payload. Payloads of one key are one.
  uint64_t add(const Payload& payload, const std::string& key) {
    if (const auto known = offsets_.find(key); !key.empty() && known != offsets_.end())
      return known->second;
    size_ = (size_ + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
    const uint64_t offset = size_;
    payloads_.emplace_back(payload, offset);
    size_ += payload.size();
    if (!key.empty()) offsets_[key] = offset;
    return offset;
  }
  uint64_t size() const { return size_; }
  void write(const std::string& path, const WeightValue& value) const {
    AtomicFile file(path);
    const std::string zeros(kDataAlignment, '\0');
    uint64_t at = 0;
    for (const auto& [payload, offset] : payloads_) {
      file.write(zeros.data(), static_cast<size_t>(offset - at));
      payload.write(file, value);
      at = offset + payload.size();
    }
    file.commit();
  }

 private:
  std::vector<std::pair<Payload, uint64_t>> payloads_;
  std::map<std::string, uint64_t> offsets_;
  uint64_t size_ = 0;
};

/// A protobuf message under construction: encoded bytes with the payloads of tensors by reference,
/// so that weights are never copied.
class Message {
 public:
  void integer(int field, int64_t value) {
    tag(field, 0);
    varint(static_cast<uint64_t>(value));
  }
  void real(int field, float value) {
    tag(field, 5);
    fixed(value);
  }
  void bytes(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    append(value);
  }
  /// As `bytes`, but left out when empty.
  void text(int field, std::string_view value) {
    if (!value.empty()) bytes(field, value);
  }
  void payload(int field, const Payload& payload) {
    tag(field, 2);
    varint(payload.size());
    if (payload.size() == 0) return;
    segments_.emplace_back(payload);
    size_ += payload.size();
  }
  void message(int field, Message&& inner) {
    tag(field, 2);
    varint(inner.size_);
    for (Segment& segment : inner.segments_) {
      if (const auto* text = std::get_if<std::string>(&segment)) {
        append(*text);
      } else {
        size_ += std::get<Payload>(segment).size();
        segments_.push_back(std::move(segment));
      }
    }
  }
  void integers(int field, const std::vector<int64_t>& values) {
    for (const int64_t value : values) integer(field, value);
  }
  uint64_t size() const { return size_; }
  void write(AtomicFile& file, const WeightValue& value) const {
    for (const Segment& segment : segments_) {
      if (const auto* text = std::get_if<std::string>(&segment)) {
        file.write(text->data(), text->size());
      } else {
        std::get<Payload>(segment).write(file, value);
      }
    }
  }

 private:
  using Segment = std::variant<std::string, Payload>;

  void append(std::string_view bytes) {
    if (segments_.empty() || !std::holds_alternative<std::string>(segments_.back()))
      segments_.emplace_back(std::string());
    std::get<std::string>(segments_.back()).append(bytes);
    size_ += bytes.size();
  }
  void tag(int field, int wire) {
    varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
  }
  void varint(uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
    append(out);
  }
  void fixed(float value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    append({raw, sizeof value});
  }

  std::vector<Segment> segments_;
  uint64_t size_ = 0;
};

static_assert(std::endian::native == std::endian::little, "ONNX stores raw data little-endian");

class Writer {
 public:
  /// `data`: null if nothing is external.
  Writer(const std::map<std::string, std::string>& weights, std::string data_name,
         ExternalData* data)
      : weights_(weights), data_name_(std::move(data_name)), data_(data) {}

  Message model(const Model& model) {
    Message out;
    out.integer(1, model.ir_version);
    out.text(2, model.producer);
    out.message(7, graph(model.graph));
    for (const auto& [domain, version] : model.opsets) out.message(8, opset(domain, version));
    for (const auto& [key, value] : model.metadata) out.message(14, entry(key, value));
    for (const Function& each : model.functions) out.message(25, function(each));
    return out;
  }

 private:
  static Message entry(const std::string& key, const std::string& value) {
    Message out;
    out.bytes(1, key);
    out.bytes(2, value);
    return out;
  }

  static Message opset(const std::string& domain, int64_t version) {
    Message out;
    out.text(1, domain);
    out.integer(2, version);
    return out;
  }

  /// Only initializers may be external: runtimes read attributes before they resolve data files.
  Message tensor(const TensorData& t, bool may_be_initializer) {
    Message out;
    out.integers(1, t.shape);
    out.integer(2, number_of_dtype(t.dtype));
    if (t.dtype == DType::kString) {
      for (const std::string& each : t.strings) out.bytes(6, each);
      out.text(8, t.name);
      return out;
    }
    out.text(8, t.name);
    const auto weight = may_be_initializer ? weights_.find(t.name) : weights_.end();
    const std::string name = weight == weights_.end() ? "" : weight->second;
    const Payload payload(t.array, t.dtype, name);
    const uint64_t size = payload.size();
    if (!data_ || !may_be_initializer || size < kMinExternal) {
      out.payload(9, payload);
      return out;
    }
    const std::string key = name.empty() ? "" : name + "\n" + text(t.dtype);
    out.message(13, entry("location", data_name_));
    out.message(13, entry("offset", std::to_string(data_->add(payload, key))));
    out.message(13, entry("length", std::to_string(size)));
    out.integer(14, 1);
    return out;
  }

  static Message type(const ValueType& t) {
    Message out;
    switch (t.kind) {
      case ValueType::Kind::kTensor: {
        Message tensor;
        if (t.dtype) tensor.integer(1, number_of_dtype(*t.dtype));
        if (t.shape) {
          Message shape;
          for (const Dim& dim : *t.shape) {
            Message each;
            if (dim.is_constant())
              each.integer(1, dim.value());
            else if (!dim.is_unknown())
              each.bytes(2, dim.text());
            shape.message(1, std::move(each));
          }
          tensor.message(2, std::move(shape));
        }
        out.message(1, std::move(tensor));
        break;
      }
      case ValueType::Kind::kSequence:
      case ValueType::Kind::kOptional: {
        Message element;
        if (t.element) element.message(1, type(*t.element));
        out.message(t.kind == ValueType::Kind::kSequence ? 4 : 9, std::move(element));
        break;
      }
      default:
        break;
    }
    return out;
  }

  static Message info(const ValueInfo& value) {
    Message out;
    out.bytes(1, value.name);
    if (value.type.kind != ValueType::Kind::kUnknown) out.message(2, type(value.type));
    return out;
  }

  Message attribute(const Attribute& a) {
    Message out;
    out.bytes(1, a.name);
    int64_t kind = 0;
    switch (a.kind) {
      case AttributeKind::kFloat:
        kind = 1;
        if (a.reference.empty()) out.real(2, a.f);
        break;
      case AttributeKind::kInt:
        kind = 2;
        if (a.reference.empty()) out.integer(3, a.i);
        break;
      case AttributeKind::kString:
        kind = 3;
        if (a.reference.empty()) out.bytes(4, a.s);
        break;
      case AttributeKind::kTensor:
        kind = 4;
        out.message(5, tensor(a.tensors.at(0), false));
        break;
      case AttributeKind::kGraph:
        kind = 5;
        out.message(6, graph(*a.graphs.at(0)));
        break;
      case AttributeKind::kFloats:
        kind = 6;
        for (const float value : a.floats) out.real(7, value);
        break;
      case AttributeKind::kInts:
        kind = 7;
        out.integers(8, a.ints);
        break;
      case AttributeKind::kStrings:
        kind = 8;
        for (const std::string& value : a.strings) out.bytes(9, value);
        break;
      default:
        fail(ErrorCode::kInternal, "the attribute '", a.name, "' is of a kind that is not written");
    }
    out.integer(20, kind);
    out.text(21, a.reference);
    return out;
  }

  Message node(const Node& n) {
    Message out;
    for (const std::string& name : n.inputs) out.bytes(1, name);
    for (const std::string& name : n.outputs) out.bytes(2, name);
    out.text(3, n.name);
    out.bytes(4, n.op_type);
    for (const Attribute& each : n.attributes) out.message(5, attribute(each));
    out.text(7, n.domain);
    out.text(8, n.overload);
    if (!n.source.empty()) out.message(9, entry("source", n.source));
    return out;
  }

  Message graph(const Graph& g) {
    Message out;
    for (const Node& each : g.nodes) out.message(1, node(each));
    out.bytes(2, g.name);
    for (const TensorData& each : g.initializers) out.message(5, tensor(each, true));
    for (const ValueInfo& each : g.inputs) out.message(11, info(each));
    for (const ValueInfo& each : g.outputs) out.message(12, info(each));
    for (const ValueInfo& each : g.values) out.message(13, info(each));
    return out;
  }

  Message function(const Function& f) {
    Message out;
    out.bytes(1, f.name);
    for (const std::string& each : f.inputs) out.bytes(4, each);
    for (const std::string& each : f.outputs) out.bytes(5, each);
    for (const std::string& each : f.attributes) out.bytes(6, each);
    for (const Node& each : f.nodes) out.message(7, node(each));
    for (const auto& [domain, version] : f.opsets) out.message(9, opset(domain, version));
    out.bytes(10, f.domain);
    for (const Attribute& each : f.defaults) out.message(11, attribute(each));
    out.text(13, f.overload);
    return out;
  }

  const std::map<std::string, std::string>& weights_;
  std::string data_name_;
  ExternalData* data_;
};

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::vector<Message> messages(std::span<const ModelFile> files, const std::string& data_path,
                              ExternalData* data) {
  std::vector<Message> out;
  for (const ModelFile& file : files)
    out.push_back(Writer(file.weights, file_name(data_path), data).model(*file.model));
  return out;
}

/// All of them, or none: the names come last.
void write_messages(std::span<const ModelFile> files, const std::vector<Message>& all,
                    const WeightValue& value) {
  std::vector<std::unique_ptr<AtomicFile>> written;
  for (size_t i = 0; i < files.size(); ++i)
    all[i].write(*written.emplace_back(std::make_unique<AtomicFile>(files[i].path)), value);
  for (const auto& file : written) file->commit();
}

}  // namespace

uint64_t encoded_bytes(const Model& model) {
  return messages(std::vector<ModelFile>{{&model, ""}}, "", nullptr)[0].size();
}

bool needs_external_data(const Model& model) { return encoded_bytes(model) > kMaxModelBytes; }

WrittenModel write_model(const Model& model, const std::string& path, const WriteOptions& options) {
  return write_models(std::vector<ModelFile>{{&model, path}}, path + ".data", options)[0];
}

std::vector<WrittenModel> write_models(std::span<const ModelFile> files,
                                       const std::string& data_path, const WriteOptions& options) {
  using External = WriteOptions::External;
  ExternalData data;
  const bool always = options.external == External::kAlways;
  std::vector<Message> all = messages(files, data_path, always ? &data : nullptr);
  for (size_t i = 0; i < files.size() && !always; ++i) {
    if (all[i].size() <= kMaxModelBytes) continue;
    if (options.external == External::kNever)
      fail(ErrorCode::kUsage, files[i].path, ": the model is ", human_bytes(all[i].size()),
           "; a file of more than 2 GiB needs external data");
    all = messages(files, data_path, &data);
    break;
  }
  if (data.size() > 0) data.write(data_path, options.weight);
  write_messages(files, all, options.weight);
  std::vector<WrittenModel> out;
  for (const Message& each : all)
    out.push_back({each.size(), data.size(), data.size() > 0 ? data_path : ""});
  return out;
}

void write_without_data(std::span<const ModelFile> files, const std::string& data_path,
                        const WriteOptions& options) {
  ExternalData unwritten;
  write_messages(files, messages(files, data_path, &unwritten), options.weight);
}

}  // namespace paddle::formats::onnx
