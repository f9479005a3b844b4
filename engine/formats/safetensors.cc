#include "formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace paddle::formats {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // limit of the reference implementation
constexpr size_t kMaxRank = 64;

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr TypeName kTypes[] = {{"BOOL", DType::kBool},
                               {"U8", DType::kU8},
                               {"I8", DType::kI8},
                               {"I16", DType::kI16},
                               {"U16", DType::kU16},
                               {"F16", DType::kF16},
                               {"BF16", DType::kBF16},
                               {"I32", DType::kI32},
                               {"U32", DType::kU32},
                               {"F32", DType::kF32},
                               {"F64", DType::kF64},
                               {"I64", DType::kI64},
                               {"U64", DType::kU64},
                               {"C64", DType::kC64},
                               {"F8_E4M3", DType::kF8E4M3FN},
                               {"F8_E5M2", DType::kF8E5M2},
                               {"F8_E8M0", DType::kF8E8M0},
                               {"F8_E4M3FNUZ", DType::kF8E4M3FNUZ},
                               {"F8_E5M2FNUZ", DType::kF8E5M2FNUZ}};

std::optional<DType> type_of(std::string_view name) {
  for (const TypeName& each : kTypes)
    if (each.name == name) return each.dtype;
  return std::nullopt;
}

std::string_view name_of(DType dtype) {
  for (const TypeName& each : kTypes)
    if (each.dtype == dtype) return each.name;
  return {};
}

/// Another format recognized by the first bytes, or "".
std::string known_format(std::string_view bytes) {
  if (bytes.starts_with("PK\003\004")) return "a ZIP archive (such as PyTorch's .pt or NPZ)";
  // A header of 640 bytes begins like a pickle of protocol 2; JSON follows its size.
  const bool is_pickle = bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
  if (is_pickle && !(bytes.size() > 8 && bytes[8] == '{'))
    return "a pickle (such as PyTorch's .pt or PaddlePaddle's .pdparams)";
  if (bytes.starts_with("\x89HDF")) return "an HDF5 file";
  if (bytes.starts_with("GGUF")) return "a GGUF file";
  return "";
}

/// Parses the header with bounded depth and unique keys; nullopt if it is invalid.
std::optional<json> parse_bounded(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  bool good = true;
  const auto check = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > 4) good = false;
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.empty() &&
        !keys.back().insert(value.get<std::string>()).second)
      good = false;
    return good;
  };
  json parsed = json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
  if (!good || parsed.is_discarded()) return std::nullopt;
  return parsed;
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::string& path, ErrorCode code)
    : file_(MappedFile::open(path, code)), code_(code) {
  if (file_->size() < 8)
    fail(code, path, ": not a safetensors file: it has ", file_->size(), " bytes");
  uint64_t header = 0;
  std::memcpy(&header, file_->data(), 8);
  if (const std::string other = known_format(file_->view()); !other.empty())
    fail(code, path, ": is ", other, ", not a safetensors file");
  if (header > kMaxHeader)
    fail(code, path, ": not a safetensors file (it does not begin with the length of a header)");
  if (header > file_->size() - 8)
    fail(code, path, ": cut short or not a safetensors file: its header should have ", header,
         " bytes, the file has ", file_->size());
  data_offset_ = 8 + header;
  parse_header(file_->view().substr(8, static_cast<size_t>(header)));
}

void SafetensorsReader::parse_header(std::string_view text) {
  const auto bad = [&](const auto&... parts) { fail(code_, path(), ": bad header: ", parts...); };
  const std::optional<json> header = text.starts_with('{') ? parse_bounded(text) : std::nullopt;
  if (!header || !header->is_object())
    fail(code_, path(), ": the header is not a valid JSON object");
  const uint64_t available = file_->size() - data_offset_;
  for (const auto& [name, value] : header->items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) bad("'__metadata__' is not a map");
      for (const auto& [key, item] : value.items()) {
        if (!item.is_string()) bad("metadata '", key, "' is not a string");
        metadata_[key] = item.get<std::string>();
      }
      continue;
    }
    if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() ||
        !value.contains("shape") || !value["shape"].is_array() || !value.contains("data_offsets") ||
        !value["data_offsets"].is_array())
      bad("tensor '", name, "' lacks dtype, shape or data_offsets");
    SafetensorsEntry entry;
    entry.name = name;
    const auto dtype = type_of(value["dtype"].get<std::string>());
    if (!dtype)
      bad("tensor '", name, "' has type '", value["dtype"].get<std::string>(),
          "', which is not supported");
    entry.dtype = *dtype;
    uint64_t bytes = static_cast<uint64_t>(item_size(*dtype)), extent = bytes;
    if (value["shape"].size() > kMaxRank) bad("tensor '", name, "' has more than 64 axes");
    for (const json& d : value["shape"]) {
      if (!d.is_number_unsigned() || d.get<uint64_t>() >> 62 ||
          __builtin_mul_overflow(extent, std::max<uint64_t>(d.get<uint64_t>(), 1), &extent) ||
          extent >> 62)
        bad("tensor '", name, "' has an impossible shape");
      bytes *= d.get<uint64_t>();
      entry.shape.push_back(d.get<int64_t>());
    }
    const json& offsets = value["data_offsets"];
    if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
      bad("tensor '", name, "' has bad data_offsets");
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
    if (entry.end > available)
      fail(code_, path(), ": cut short: tensor '", name, "' ends at byte ", entry.end, " of ",
           available);
    if (entry.begin > entry.end || entry.end - entry.begin != bytes)
      bad("tensor '", name, "' needs ", bytes, " bytes, its offsets are [", entry.begin, ", ",
          entry.end, ")");
    entries_.push_back(std::move(entry));
  }
  std::sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t covered = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].begin != covered)
      bad("tensor '", entries_[i].name, "' starts at byte ", entries_[i].begin,
          covered > entries_[i].begin ? ", overlapping another tensor" : ", after a gap");
    covered = entries_[i].end;
    index_[entries_[i].name] = i;
  }
  if (covered != available) bad("the tensors take ", covered, " bytes, the file has ", available);
}

const SafetensorsEntry* SafetensorsReader::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

Array SafetensorsReader::read(const std::string& name) const {
  const SafetensorsEntry* entry = find(name);
  if (!entry) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& each : entries_) names.push_back(each.name);
    fail(code_, path(), ": no tensor '", name, "'", did_you_mean(name, names));
  }
  return read(*entry);
}

Array SafetensorsReader::read(const SafetensorsEntry& entry) const {
  const size_t bytes = static_cast<size_t>(entry.end - entry.begin);
  if (bytes == 0) return Array::empty(entry.dtype, entry.shape);
  std::byte* at = file_->data() + data_offset_ + entry.begin;
  Array array;
  array.dtype = entry.dtype;
  array.shape = entry.shape;
  array.strides = contiguous_strides(entry.shape);
  const auto alignment = static_cast<uintptr_t>(std::min<int64_t>(item_size(entry.dtype), 8));
  if (reinterpret_cast<uintptr_t>(at) % alignment == 0) {
    array.storage = Storage::borrow(at, bytes, file_);
  } else {
    array.storage = Storage::allocate(bytes);
    std::memcpy(array.storage->data(), at, bytes);
  }
  if (entry.dtype == DType::kBool)  // other bytes are not valid bools
    for (std::byte& each : std::span(array.storage->data(), bytes))
      if (static_cast<uint8_t>(each) > 1) each = std::byte{1};
  return array;
}

bool safetensors_has(DType dtype) { return !name_of(dtype).empty(); }

namespace {

/// Sorts the entries, assigns their offsets, and gives what the file begins with.
std::string begin_file(const std::string& path, std::vector<SafetensorsEntry>& entries,
                       const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter::sort(entries);
  std::set<std::string> names = {"__metadata__"};
  std::string text = "{";
  uint64_t at = 0;
  try {
    if (!metadata.empty()) text += "\"__metadata__\":" + json(metadata).dump() + ",";
    for (SafetensorsEntry& e : entries) {
      if (!safetensors_has(e.dtype))
        fail(ErrorCode::kUsage, "safetensors has no type for ", paddle::text(e.dtype), " (tensor '",
             e.name, "')");
      if (!names.insert(e.name).second)
        fail(ErrorCode::kUsage, "two tensors are named '", e.name, "'");
      const int64_t count = element_count(std::span<const int64_t>(e.shape));
      e.begin = at;
      e.end = at += static_cast<uint64_t>(count * item_size(e.dtype));
      text += str(json(e.name).dump(), ":{\"dtype\":\"", name_of(e.dtype),
                  "\",\"shape\":", json(e.shape).dump(), ",\"data_offsets\":[", e.begin, ",", e.end,
                  "]},");
    }
  } catch (const json::exception&) {
    fail(ErrorCode::kUsage, "cannot write '", path, "': a name is not valid UTF-8");
  }
  if (text.ends_with(',')) text.pop_back();
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

void SafetensorsWriter::sort(std::vector<SafetensorsEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    const int64_t wa = item_size(a.dtype), wb = item_size(b.dtype);
    return wa != wb ? wa > wb : a.name < b.name;
  });
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<SafetensorsEntry> entries,
                                     const std::map<std::string, std::string>& metadata)
    : entries_(std::move(entries)), file_(path) {
  file_.write(begin_file(path, entries_, metadata));
}

void SafetensorsWriter::add(const Array& array) {
  ensure(next_ < entries_.size(), "SafetensorsWriter: too many tensors");
  const SafetensorsEntry& entry = entries_[next_++];
  ensure(array.dtype == entry.dtype && array.shape == entry.shape,
         "SafetensorsWriter: another tensor than '", entry.name, "'");
  const Array packed = array.contiguous();
  file_.write(packed.raw(), static_cast<size_t>(entry.end - entry.begin));
}

void SafetensorsWriter::close() {
  ensure(next_ == entries_.size(), "SafetensorsWriter: tensors are missing");
  file_.commit();
}

SafetensorsParts::SafetensorsParts(std::string path, std::vector<SafetensorsEntry> entries)
    : path_(std::move(path)), header_(begin_file(path_, entries, {})) {
  for (SafetensorsEntry& e : entries) {
    data_bytes_ = e.end;
    entries_[e.name] = std::move(e);
  }
}

void SafetensorsParts::create() const {
  SharedFile::create(path_, bytes());
  SharedFile file(path_);
  file.write(0, std::as_bytes(std::span(header_)));
}

void SafetensorsParts::open() { file_.emplace(path_); }

void SafetensorsParts::write(const std::string& name, int64_t first,
                             std::span<const std::byte> elements) {
  const SafetensorsEntry& entry = entries_.at(name);
  const uint64_t begin = entry.begin + static_cast<uint64_t>(first * item_size(entry.dtype));
  ensure(begin + elements.size() <= entry.end, "SafetensorsParts: past the end of a tensor");
  file_->write(header_.size() + begin, elements);
}

void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Array>>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, const Array*> arrays;
  for (const auto& [name, array] : tensors) {
    entries.push_back({.name = name, .dtype = array.dtype, .shape = array.shape});
    arrays[name] = &array;
  }
  SafetensorsWriter writer(path, std::move(entries), metadata);
  for (const SafetensorsEntry& e : writer.entries()) writer.add(*arrays.at(e.name));
  writer.close();
}

}  // namespace paddle::formats
