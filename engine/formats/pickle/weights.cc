#include "formats/pickle/weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "base/utf8.h"
#include "formats/pickle/pickle.h"

namespace paddle::formats::pickle {
namespace {

/// Calls that are recorded. All others are rejected.
bool is_known(std::string_view global) {
  static constexpr std::string_view kKnown[] = {
      "torch._utils _rebuild_tensor",
      "torch._utils _rebuild_tensor_v2",
      "torch._utils _rebuild_tensor_v3",
      "torch._utils _rebuild_parameter",
      "torch._utils _rebuild_parameter_with_state",
      "torch device",
      "numpy dtype",
      "numpy ndarray",
      "numpy.core.multiarray _reconstruct",
      "numpy._core.multiarray _reconstruct",
      "numpy.core.multiarray scalar",
      "numpy._core.multiarray scalar",
      "_codecs encode",
      "argparse Namespace",
      "collections defaultdict",
      "pathlib PosixPath",
  };
  // Objects of TorchScript archives: modules with their attributes, and typed lists.
  return global.starts_with("__torch__") || global.starts_with("torch.jit._pickle ") ||
         std::ranges::count(kKnown, global) > 0;
}

/// The dtype of a storage class or dtype of PyTorch, such as "FloatStorage" or "bfloat16".
std::optional<DType> torch_dtype(const std::string& global) {
  static const std::map<std::string, DType> kTypes = {
      {"DoubleStorage", DType::kF64},       {"FloatStorage", DType::kF32},
      {"HalfStorage", DType::kF16},         {"BFloat16Storage", DType::kBF16},
      {"LongStorage", DType::kI64},         {"IntStorage", DType::kI32},
      {"ShortStorage", DType::kI16},        {"CharStorage", DType::kI8},
      {"ByteStorage", DType::kU8},          {"BoolStorage", DType::kBool},
      {"ComplexFloatStorage", DType::kC64}, {"ComplexDoubleStorage", DType::kC128}};
  if (!global.starts_with("torch ")) return std::nullopt;
  const auto it = kTypes.find(global.substr(6));
  return it == kTypes.end() ? std::nullopt : std::optional(it->second);
}

/// A dtype of PyTorch, for storages without one.
std::optional<DType> torch_element(const std::string& global) {
  static const std::map<std::string, DType> kTypes = {{"torch float64", DType::kF64},
                                                      {"torch float32", DType::kF32},
                                                      {"torch float16", DType::kF16},
                                                      {"torch bfloat16", DType::kBF16},
                                                      {"torch int64", DType::kI64},
                                                      {"torch int32", DType::kI32},
                                                      {"torch int16", DType::kI16},
                                                      {"torch int8", DType::kI8},
                                                      {"torch uint8", DType::kU8},
                                                      {"torch uint16", DType::kU16},
                                                      {"torch uint32", DType::kU32},
                                                      {"torch uint64", DType::kU64},
                                                      {"torch bool", DType::kBool},
                                                      {"torch complex64", DType::kC64},
                                                      {"torch complex128", DType::kC128},
                                                      {"torch float8_e4m3fn", DType::kF8E4M3FN},
                                                      {"torch float8_e5m2", DType::kF8E5M2},
                                                      {"torch float8_e4m3fnuz", DType::kF8E4M3FNUZ},
                                                      {"torch float8_e5m2fnuz", DType::kF8E5M2FNUZ},
                                                      {"torch float8_e8m0fnu", DType::kF8E8M0}};
  const auto it = kTypes.find(global);
  return it == kTypes.end() ? std::nullopt : std::optional(it->second);
}

/// The dtype of NumPy's code, such as "f4".
std::optional<DType> numpy_dtype(std::string_view code) {
  static const std::map<std::string_view, DType> kTypes = {
      {"f8", DType::kF64}, {"f4", DType::kF32},  {"f2", DType::kF16}, {"i8", DType::kI64},
      {"i4", DType::kI32}, {"i2", DType::kI16},  {"i1", DType::kI8},  {"u8", DType::kU64},
      {"u4", DType::kU32}, {"u2", DType::kU16},  {"u1", DType::kU8},  {"b1", DType::kBool},
      {"c8", DType::kC64}, {"c16", DType::kC128}};
  const auto it = kTypes.find(code);
  return it == kTypes.end() ? std::nullopt : std::optional(it->second);
}

bool is_array_call(const Value& value) {
  return value.calls("numpy.core.multiarray _reconstruct") ||
         value.calls("numpy._core.multiarray _reconstruct");
}

}  // namespace

/// Finds the tensors below a value.
class WeightFile::Collector {
 public:
  explicit Collector(WeightFile& file, bool of_paddle = false)
      : file_(file), of_paddle_(of_paddle) {}
  virtual ~Collector() = default;

  void collect(const Value& root) {
    visit(root, "", 0);
    if (const Value* table = of_paddle_ ? item_of(root, kSliceTable) : nullptr) join_slices(*table);
    std::vector<std::string> others;
    for (const auto& [what, count] : left_out_) others.push_back(str(what, " (", count, ")"));
    if (!others.empty())
      file_.notes_.push_back("values that are not tensors are left out: " + join(others, ", "));
  }

 protected:
  [[noreturn]] void bad(const std::string& why) const {
    fail(ErrorCode::kModel, file_.path_, ": ", why);
  }
  /// The storage of a tensor, from the persistent id ("storage", class, key, device, count).
  virtual void find_storage(const Value& /*id*/, NamedTensor& /*tensor*/) {
    bad("a tensor refers to a storage outside of the pickle");
  }
  const Value& at(const std::vector<const Value*>& items, size_t i) const {
    if (i >= items.size()) bad("the description of a tensor is incomplete");
    return *items[i];
  }

  WeightFile& file_;

 private:
  /// The key under which PaddlePaddle says which arrays are slices of larger ones.
  static constexpr std::string_view kSliceTable = "UnpackBigParamInfor@@";
  static constexpr int kMaxDepth = 64;
  static constexpr size_t kMaxTensors = size_t{1} << 20;

  void visit(const Value& value, const std::string& name, int depth) {
    // Collections can contain each other, and shared ones multiply.
    if (depth > kMaxDepth) bad("collections are nested more than 64 deep, or contain themselves");
    if (++visited_ > (size_t{1} << 22)) bad("it has more than four million values");
    const auto below = [&](const std::string& key) {
      return name.empty() ? key : name + "." + key;
    };
    switch (value.kind) {
      case Kind::kDict:
        if (value.items.size() % 2 != 0) bad("a dict is malformed");
        for (size_t i = 0; i < value.items.size(); i += 2)
          if (const auto key = key_of(*value.items[i]); key && (!of_paddle_ || *key != kSliceTable))
            visit(*value.items[i + 1], below(*key), depth + 1);
        return;
      case Kind::kTuple:
        // PaddlePaddle writes a tensor as the pair of its name and its array.
        if (value.items.size() == 2 && value.items[0]->is(Kind::kText) &&
            is_array_call(*value.items[1]))
          return visit(*value.items[1], name, depth + 1);
        [[fallthrough]];
      case Kind::kList:
      case Kind::kSet:
        for (size_t i = 0; i < value.items.size(); ++i)
          visit(*value.items[i], below(std::to_string(i)), depth + 1);
        return;
      case Kind::kCall:
        return visit_call(value, name, depth);
      case Kind::kNone:
        return;
      case Kind::kText:
        file_.strings_.emplace(name, value.text);
        if (!of_paddle_ || !name.starts_with(kVariableNames)) ++left_out_["strings"];
        return;
      case Kind::kBytes:
        ++left_out_["byte strings"];
        return;
      default:
        if (value.is(Kind::kFloat)) file_.numbers_.emplace(name, value.real);
        if (value.is(Kind::kInt)) file_.numbers_.emplace(name, static_cast<double>(value.integer));
        ++left_out_["numbers"];
        return;
    }
  }

  std::optional<std::string> key_of(const Value& key) {
    if (key.is(Kind::kText)) return std::string(key.text);
    if (key.is(Kind::kInt) || key.is(Kind::kBool)) return std::to_string(key.integer);
    ++left_out_["values with a key that is neither a string nor an integer"];
    return std::nullopt;
  }

  void visit_call(const Value& call, const std::string& name, int depth) {
    if (call.calls("torch._utils _rebuild_parameter") ||
        call.calls("torch._utils _rebuild_parameter_with_state"))
      return visit(at(call.arguments(), 0), name, depth + 1);
    if (call.items[0]->name.starts_with("torch._utils _rebuild_tensor"))
      return add(torch_tensor(call), name);
    if (call.items[0]->name.starts_with("__torch__") && call.state)
      return visit(*call.state, name, depth + 1);
    if (call.items[0]->name.starts_with("torch.jit._pickle ") && !call.arguments().empty())
      return visit(*call.arguments()[0], name, depth + 1);
    if (is_array_call(call)) return add(numpy_array(call), name);
    ++left_out_["objects of " + call.items[0]->name];
  }

  /// The value of a key; null if there is none.
  static const Value* item_of(const Value& dict, std::string_view key) {
    for (size_t i = 0; dict.is(Kind::kDict) && i + 1 < dict.items.size(); i += 2)
      if (dict.items[i]->is(Kind::kText) && dict.items[i]->text == key) return dict.items[i + 1];
    return nullptr;
  }

  /// Replaces flat slices by the arrays that they are of: {name: {"OriginShape", "slices"}}.
  void join_slices(const Value& table) {
    if (!table.is(Kind::kDict)) bad(str("'", kSliceTable, "' is not a dict"));
    for (size_t i = 0; i + 1 < table.items.size(); i += 2) {
      const Value* const shape = item_of(*table.items[i + 1], "OriginShape");
      const Value* const slices = item_of(*table.items[i + 1], "slices");
      if (!table.items[i]->is(Kind::kText) || !shape || !slices || !slices->is(Kind::kList))
        bad(str("'", kSliceTable, "' is damaged"));
      NamedTensor joined;
      joined.name = std::string(table.items[i]->text);
      joined.shape = dims_of(*shape);
      int64_t left = 1;
      for (const int64_t size : joined.shape)
        if (size < 0 || __builtin_mul_overflow(left, size, &left)) bad("a size is negative");
      joined.strides = contiguous_strides(joined.shape);
      for (const Value* slice : slices->items) {
        const auto at = std::ranges::find_if(file_.tensors_, [&](const NamedTensor& tensor) {
          return slice->is(Kind::kText) && tensor.name == slice->text;
        });
        if (at == file_.tensors_.end()) bad(str("a slice of '", joined.name, "' is missing"));
        if (at->shape.size() != 1 || (!joined.slices.empty() && at->dtype != joined.dtype))
          bad(str("the slices of '", joined.name, "' are not flat or differ in type"));
        joined.dtype = at->dtype;
        left -= at->shape[0];
        joined.slices.push_back(std::move(*at));
        file_.tensors_.erase(at);
      }
      if (left != 0 || joined.slices.empty())
        bad(str("the slices of '", joined.name, "' are not its elements"));
      file_.tensors_.push_back(std::move(joined));
    }
  }

  void add(NamedTensor tensor, const std::string& name) {
    if (file_.tensors_.size() >= kMaxTensors) bad("it has more than a million tensors");
    tensor.name = name.empty() ? "tensor" : name;
    check_window(tensor);
    file_.tensors_.push_back(std::move(tensor));
  }

  /// The elements that strides reach must be inside the storage.
  void check_window(const NamedTensor& tensor) const {
    int64_t last = tensor.offset, count = 1;
    bool fits = tensor.offset >= 0 && tensor.shape.size() == tensor.strides.size();
    for (size_t i = 0; fits && i < tensor.shape.size(); ++i) {
      int64_t reach = 0;
      fits = tensor.shape[i] >= 0 && tensor.strides[i] >= 0 &&
             !__builtin_mul_overflow(count, tensor.shape[i], &count) &&
             !__builtin_mul_overflow(std::max<int64_t>(0, tensor.shape[i] - 1), tensor.strides[i],
                                     &reach) &&
             !__builtin_add_overflow(last, reach, &last);
    }
    const uint64_t bytes =
        tensor.deflated ? file_.zip_->entries()[tensor.entry].bytes : tensor.bytes.size();
    const auto elements =
        static_cast<int64_t>(bytes / static_cast<uint64_t>(item_size(tensor.dtype)));
    // Strides of zero repeat elements; a tensor may be larger than its storage, but not by much.
    fits = fits && (count == 0 || last < elements) && count <= std::max<int64_t>(elements, 1) * 64;
    if (!fits) bad(str("the tensor '", tensor.name, "' reaches beyond its storage"));
  }

  Dims dims_of(const Value& value) const {
    if (!value.is(Kind::kTuple) && !value.is(Kind::kList)) bad("a shape is not a tuple");
    Dims out;
    for (const Value* item : value.items) {
      if (!item->is(Kind::kInt)) bad("a size is not an integer");
      out.push_back(item->integer);
    }
    return out;
  }

  NamedTensor torch_tensor(const Value& call) {
    const auto& arguments = call.arguments();
    const Value& storage = at(arguments, 0);
    if (!storage.is(Kind::kPersistent)) bad("a tensor has no storage");
    NamedTensor out;
    find_storage(*storage.items[0], out);
    if (call.calls("torch._utils _rebuild_tensor_v3")) {
      const auto dtype = torch_element(at(arguments, 6).name);
      if (!dtype)
        bad(str("a tensor has the dtype '", at(arguments, 6).name, "', which is not supported"));
      out.dtype = *dtype;
    }
    if (!at(arguments, 1).is(Kind::kInt)) bad("the offset of a tensor is not an integer");
    out.offset = at(arguments, 1).integer;
    out.shape = dims_of(at(arguments, 2));
    out.strides = dims_of(at(arguments, 3));
    read_flags(call, out);
    return out;
  }

  /// The last argument: {"conj": True} of a view whose storage is to be conjugated, {"neg": True}
  /// of one that is to be negated.
  void read_flags(const Value& call, NamedTensor& out) {
    const size_t place = call.calls("torch._utils _rebuild_tensor_v3") ? 7 : 6;
    if (call.calls("torch._utils _rebuild_tensor") || call.arguments().size() <= place) return;
    const Value& flags = *call.arguments()[place];
    if (!flags.is(Kind::kDict)) return;
    for (size_t i = 0; i + 1 < flags.items.size(); i += 2) {
      if (flags.items[i + 1]->integer == 0) continue;
      const std::string_view name = flags.items[i]->text;
      if (name == "conj")
        out.conjugate = is_complex(out.dtype);
      else if (name == "neg")
        out.negative = true;
      else
        bad(str("a tensor has the flag '", name, "', which is not supported"));
    }
    if (out.negative && !is_float(out.dtype) && !is_complex(out.dtype))
      bad("an integer tensor has the flag 'neg'");
  }

  /// The state is (version, shape, dtype, fortran order, bytes).
  NamedTensor numpy_array(const Value& call) {
    if (!call.state || !call.state->is(Kind::kTuple)) bad("an array has no contents");
    const auto& state = call.state->items;
    const Value& dtype = at(state, 2);
    const Value& data = at(state, 4);
    if (!dtype.calls("numpy dtype")) bad("an array has no dtype");
    const Value& code = at(dtype.arguments(), 0);
    const auto type = code.is(Kind::kText) ? numpy_dtype(code.text) : std::nullopt;
    if (!type)
      bad(str("an array has the dtype '", std::string(code.text), "', which is not supported"));
    if (dtype.state && dtype.state->items.size() > 1 && dtype.state->items[1]->text == ">")
      bad("an array has big-endian elements, which are not supported");
    NamedTensor out;
    // PaddlePaddle has no uint16 and writes the bits of bfloat16 so.
    out.dtype = of_paddle_ && *type == DType::kU16 ? DType::kBF16 : *type;
    out.shape = dims_of(at(state, 1));
    for (const int64_t size : out.shape)
      if (size < 0) bad("a size is negative");
    out.strides = contiguous_strides(out.shape);
    if (at(state, 3).integer != 0) {  // the first axis is the innermost one in memory
      const Dims reversed(out.shape.rbegin(), out.shape.rend());
      out.strides = contiguous_strides(reversed);
      std::reverse(out.strides.begin(), out.strides.end());
    }
    out.bytes = bytes_of(data);
    return out;
  }

  /// Bytes, or those that protocol 2 writes as a text in Latin-1.
  std::span<const std::byte> bytes_of(const Value& data) {
    if (data.is(Kind::kBytes) || data.is(Kind::kText))
      return std::as_bytes(std::span(data.text.data(), data.text.size()));
    if (!data.calls("_codecs encode") || !at(data.arguments(), 0).is(Kind::kText))
      bad("the elements of an array are not bytes");
    const std::string_view text = at(data.arguments(), 0).text;
    std::vector<std::byte>& decoded = file_.memory_->decoded.emplace_back();
    for (size_t i = 0; i < text.size();) {
      const Utf8Character character = utf8_character(text, i);
      if (character.length == 0 || character.code > 0xff)
        bad("the elements of an array are not bytes");
      decoded.push_back(static_cast<std::byte>(character.code));
      i += character.length;
    }
    return decoded;
  }

  bool of_paddle_;
  std::map<std::string, int64_t> left_out_;
  size_t visited_ = 0;
};

namespace {

/// The parts of a persistent id: ("storage", class, key, device, elements, …).
struct StorageId {
  DType dtype = DType::kU8;  ///< of a storage without a type
  std::string key;
  int64_t elements = 0;
};

std::optional<StorageId> storage_id(const Value& id) {
  if (!id.is(Kind::kTuple) || id.items.size() < 5 || id.items[0]->text != "storage" ||
      !id.items[1]->is(Kind::kGlobal) || !id.items[2]->is(Kind::kText) ||
      !id.items[4]->is(Kind::kInt) || id.items[4]->integer < 0)
    return std::nullopt;
  StorageId out;
  if (id.items[1]->name != "torch.storage UntypedStorage") {
    const auto dtype = torch_dtype(id.items[1]->name);
    if (!dtype) return std::nullopt;
    out.dtype = *dtype;
  }
  out.key = std::string(id.items[2]->text);
  out.elements = id.items[4]->integer;
  return out;
}

}  // namespace

/// Tensors of an archive: storages are entries next to the pickle.
class WeightFile::Archive final : public Collector {
 public:
  Archive(WeightFile& file, const std::string& folder) : Collector(file) {
    const auto& entries = file.zip_->entries();
    const std::string prefix = folder + "data/";
    for (size_t i = 0; i < entries.size(); ++i)
      if (entries[i].name.starts_with(prefix)) entries_[entries[i].name.substr(prefix.size())] = i;
  }

 private:
  void find_storage(const Value& id, NamedTensor& tensor) override {
    const auto storage = storage_id(id);
    if (!storage) bad("a storage is of an unknown kind");
    const auto it = entries_.find(storage->key);
    if (it == entries_.end()) bad(str("the storage '", storage->key, "' is missing"));
    tensor.dtype = storage->dtype;
    tensor.entry = it->second;
    const ZipEntry& entry = file_.zip_->entries()[it->second];
    tensor.deflated = entry.deflated;
    if (entry.deflated) return;
    const auto [known, first] = checked_.try_emplace(it->second);
    if (first) known->second = file_.zip_->stored(entry);
    tensor.bytes = known->second;
  }

  std::map<std::string, size_t> entries_;
  std::map<size_t, std::span<const std::byte>> checked_;
};

/// Tensors of the form before archives: storages follow the pickles.
class WeightFile::Storages final : public Collector {
 public:
  /// `keys` names the storages in the order in which they follow `at`.
  Storages(WeightFile& file, const Reader& reader, const Value& keys, size_t at) : Collector(file) {
    std::map<std::string, DType> dtypes;
    for (const Value* reference : reader.references())
      if (const auto id = storage_id(*reference->items[0])) dtypes[id->key] = id->dtype;
    const std::span<const std::byte> bytes = file.memory_->file->bytes();
    for (const Value* key : keys.items) {
      const std::string name(key->text);
      if (!dtypes.contains(name)) bad(str("no tensor uses the storage '", name, "'"));
      uint64_t elements = 0;
      if (bytes.size() - at < sizeof elements) bad("the storages end early");
      std::memcpy(&elements, bytes.data() + at, sizeof elements);
      at += sizeof elements;
      const auto item = static_cast<uint64_t>(item_size(dtypes[name]));
      if (elements > (bytes.size() - at) / item) bad("the storages end early");
      storages_[name] = bytes.subspan(at, static_cast<size_t>(elements * item));
      at += static_cast<size_t>(elements * item);
    }
  }

 private:
  void find_storage(const Value& id, NamedTensor& tensor) override {
    const auto storage = storage_id(id);
    if (!storage) bad("a storage is of an unknown kind");
    const auto it = storages_.find(storage->key);
    if (it == storages_.end()) bad(str("the storage '", storage->key, "' is missing"));
    tensor.dtype = storage->dtype;
    tensor.bytes = it->second;
  }

  std::map<std::string, std::span<const std::byte>> storages_;
};

WeightFile::WeightFile(const std::string& path, Tensors tensors) : path_(path) {
  memory_->file = MappedFile::open(path, ErrorCode::kModel);
  const std::span<const std::byte> bytes = memory_->file->bytes();
  constexpr std::string_view kZip = "PK\x03\x04";
  if (bytes.size() >= kZip.size() && std::memcmp(bytes.data(), kZip.data(), kZip.size()) == 0)
    open_archive();
  else
    open_plain();
  if (tensors_.empty() && tensors == Tensors::kRequired)
    fail(ErrorCode::kModel, path, ": it holds no tensors");
}

void WeightFile::open_archive() {
  zip_ = std::make_unique<ZipReader>(path_, ErrorCode::kModel);
  memory_->file = zip_->file();
  const auto& entries = zip_->entries();
  const auto pickle = std::ranges::find_if(entries, [](const ZipEntry& entry) {
    return entry.name == "data.pkl" || entry.name.ends_with("/data.pkl");
  });
  if (pickle == entries.end())
    fail(ErrorCode::kModel, path_, ": is an archive without data.pkl, so not one of PyTorch");
  const std::string folder = pickle->name.substr(0, pickle->name.size() - 8);
  for (const ZipEntry& entry : entries) {
    if (entry.name != folder + "byteorder") continue;
    const auto order = zip_->head(entry, 3);
    if (order.size() == 3 && std::memcmp(order.data(), "big", 3) == 0)
      fail(ErrorCode::kModel, path_, ": has big-endian elements, which are not supported");
  }
  constexpr uint64_t kMaxPickleBytes = uint64_t{1} << 30;
  if (pickle->bytes > kMaxPickleBytes)
    fail(ErrorCode::kModel, path_, ": data.pkl has ", human_bytes(pickle->bytes));
  std::vector<std::byte> text(static_cast<size_t>(pickle->bytes));
  zip_->extract(*pickle, text);
  Reader reader(text, path_, is_known);
  Archive(*this, folder).collect(reader.read());
}

void WeightFile::open_plain() {
  constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  Reader reader(memory_->file->bytes(), path_, is_known);
  const Value& first = reader.read();
  if (!first.is(Kind::kBytes) || first.text != kMagic)
    return Collector(*this, /*of_paddle=*/true).collect(first);
  reader.read();  // the version of the format
  reader.read();  // what the machine was
  const Value& content = reader.read();
  const Value& keys = reader.read();
  Storages(*this, reader, keys, reader.position()).collect(content);
}

namespace {

/// Negates every `step`-th of `count` numbers, from `first` on.
template <class T>
void negate_numbers(Array& array, int64_t first, int64_t step, int64_t count) {
  T* const values = array.data<T>();
  for (int64_t i = first; i < count; i += step) values[i] = -values[i];
}

/// Changes the sign of real numbers, or of both or only the imaginary halves of complex ones.
void change_signs(Array& array, bool imaginary_only) {
  const int64_t first = imaginary_only ? 1 : 0, step = imaginary_only ? 2 : 1;
  const int64_t numbers = array.size() * (is_complex(array.dtype) ? 2 : 1);
  switch (array.dtype) {
    case DType::kF32:
    case DType::kC64:
      return negate_numbers<float>(array, first, step, numbers);
    case DType::kF64:
    case DType::kC128:
      return negate_numbers<double>(array, first, step, numbers);
    default: {
      const DType dtype = array.dtype;
      array = array.cast(DType::kF64);
      negate_numbers<double>(array, first, step, numbers);
      array = array.cast(dtype);
    }
  }
}

}  // namespace

Array WeightFile::read(size_t index) const {
  const NamedTensor& tensor = tensors_.at(index);
  if (tensor.slices.empty()) return read(tensor);
  Array out = Array::empty(tensor.dtype, tensor.shape);
  auto* to = static_cast<std::byte*>(out.raw());
  for (const NamedTensor& slice : tensor.slices) {
    const Array values = read(slice);
    const auto bytes = static_cast<size_t>(storage_bytes(values.dtype, values.size()));
    std::memcpy(to, values.raw(), bytes);
    to += bytes;
  }
  return out;
}

Array WeightFile::read(const NamedTensor& tensor) const {
  Array out;
  out.dtype = tensor.dtype;
  out.shape = tensor.shape;
  out.strides = tensor.strides;
  out.offset = tensor.offset;
  if (tensor.deflated) {
    const ZipEntry& entry = zip_->entries()[tensor.entry];
    out.storage = Storage::allocate(static_cast<size_t>(entry.bytes));
    zip_->extract(entry, {out.storage->data(), static_cast<size_t>(entry.bytes)});
  } else {
    // Elements may be at any address of the file.
    out.storage = Storage::borrow_unaligned(tensor.bytes.data(), tensor.bytes.size(), memory_);
  }
  if (tensor.conjugate || tensor.negative) {
    Array changed = Array::empty(out.dtype, out.shape);
    const Array values = out.contiguous();
    std::memcpy(changed.raw(), values.raw(),
                static_cast<size_t>(storage_bytes(values.dtype, values.size())));
    if (tensor.conjugate) change_signs(changed, /*imaginary_only=*/true);
    if (tensor.negative) change_signs(changed, /*imaginary_only=*/false);
    return changed;
  }
  return out.contiguous();
}

}  // namespace paddle::formats::pickle
