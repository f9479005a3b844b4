#include "data/sources/cell_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/key_text.h"
#include "data/cells.h"
#include "data/transforms/narrow.h"
#include "formats/csv.h"
#include "formats/sound/sound.h"

namespace paddle::data {
namespace {

constexpr int64_t kNoClass = -100;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The class of each stored value; kNoClass for those that are ignored, -1 for others.
class MaskClasses {
 public:
  explicit MaskClasses(const CsvField& field)
      : listed_(!field.values.empty()), other_(field.ignores_others ? kNoClass : -1) {
    for (size_t i = 0; i < field.values.size(); ++i)
      map_[field.values[i].first] = static_cast<int64_t>(i);
    for (const int64_t value : field.ignored) map_[value] = kNoClass;
  }
  int64_t operator()(int64_t stored) const {
    const auto it = map_.find(stored);
    if (it != map_.end()) return it->second;
    return listed_ ? other_ : stored;
  }

 private:
  bool listed_;
  int64_t other_;
  std::map<int64_t, int64_t> map_;
};

void store_mask(const CsvField& field, const formats::Image& image, Value& out) {
  const MaskClasses classes(field);
  out.reset(DType::kI64, Dims{image.height, image.width});
  int64_t* to = out.data<int64_t>();
  for (int64_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t stored = image.wide.empty() ? image.pixels[at] : image.wide[at];
    to[i] = classes(stored);
    if (to[i] == -1)
      fail(ErrorCode::kData, "the mask has the value ", stored, " at row ", i / image.width,
           ", column ", i % image.width, ", which `values` and `ignore` do not list");
  }
}

void store_sound(const CsvField& field, formats::Sound sound, const std::string& name, Value& out) {
  formats::resample(sound, field.sample_rate, name);
  const int64_t length = std::min(static_cast<int64_t>(sound.samples.size()), field.max_length);
  out.reset(DType::kF32, Dims{length});
  std::copy_n(sound.samples.data(), length, out.data<float>());
}

}  // namespace

bool is_cell_kind(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kImage:
    case ColumnKind::kMask:
    case ColumnKind::kMultiLabel:
    case ColumnKind::kAudio:
    case ColumnKind::kNumbers:
    case ColumnKind::kKeys:
      return true;
    default:
      return false;
  }
}

DType cell_dtype(const CsvField& field) {
  switch (field.kind) {
    case ColumnKind::kImage:
      return field.dtype.value_or(DType::kU8);
    case ColumnKind::kMask:
      return DType::kI64;
    default:
      return field.dtype.value_or(DType::kF32);
  }
}

void check_cell_field(const CsvField& field, size_t columns) {
  const auto reject = [&](bool wrong, const std::string& why) {
    if (wrong) fail(ErrorCode::kConfig, "field '", field.name, "': ", why);
  };
  reject(columns != 1, str("is one column, ", columns, " are named"));
  reject(field.log || field.scaling != Scaling::kNone || !field.shift.empty() ||
             (field.missing != MissingPolicy::kDefault && field.missing != MissingPolicy::kError) ||
             field.buckets > 0 || field.per_column || field.unknown_is_zero || field.scalar,
         "options of numbers and categories have no effect on this kind");
  const bool has_vocabulary = !field.vocabulary.empty() || !field.vocabulary_file.empty();
  reject(has_vocabulary && field.kind != ColumnKind::kMultiLabel,
         "`vocabulary` has no effect on this kind");
  const DType dtype = cell_dtype(field);
  switch (field.kind) {
    case ColumnKind::kImage:
      reject(dtype != DType::kU8 && dtype != DType::kU16, "an image is uint8 or uint16");
      reject(field.channels != 1 && field.channels != 3, "channels is 1 or 3");
      break;
    case ColumnKind::kMask:
      reject(field.dtype && *field.dtype != DType::kI64, "a mask is int64");
      for (const auto& [value, name] : field.values)
        reject(std::find(field.ignored.begin(), field.ignored.end(), value) != field.ignored.end(),
               str("the value ", value, " is in `values` and in `ignore`"));
      break;
    case ColumnKind::kAudio:
      reject(dtype != DType::kF32, "a sound is float32");
      reject(field.sample_rate < 1, "`sample_rate` is missing");
      break;
    case ColumnKind::kMultiLabel:
      reject(!is_float(dtype), "labels as 0 and 1 are of a floating type");
      break;
    case ColumnKind::kKeys:
      reject(dtype != DType::kI64 && dtype != DType::kU64, "keys are int64 or uint64");
      reject(field.most < 1, "`most` is missing");
      break;
    default:
      reject(!info(dtype).has_kernels, "no numbers of this type");
      for (const int64_t d : field.shape) reject(d < 1, "`shape` has sizes of at least 1");
      reject(field.shape.empty(), "`shape` is missing");
  }
}

bool describe_cell_field(const CsvField& field, const Vocabulary& vocabulary, Field& out) {
  switch (field.kind) {
    case ColumnKind::kImage:
      out.kind = FieldKind::kImage;
      out.shape = {field.channels, -1, -1};
      return true;
    case ColumnKind::kMask:
      out.kind = FieldKind::kMask;
      out.shape = {-1, -1};
      out.class_count = static_cast<int64_t>(field.values.size());
      for (const auto& [value, name] : field.values) out.classes.push_back(name);
      return true;
    case ColumnKind::kAudio:
      out.shape = {-1};
      out.max_length = field.max_length;
      return true;
    case ColumnKind::kMultiLabel:
      out.shape = {vocabulary.size()};
      out.classes = vocabulary.tokens();
      return true;
    case ColumnKind::kNumbers:
      out.shape = field.shape;
      return true;
    case ColumnKind::kKeys:
      out.shape = {-1};
      out.max_length = field.most;
      return true;
    default:
      return false;
  }
}

std::string path_in_cell(const CsvField& field, std::string_view cell,
                         const SourceLocation& place) {
  if (cell.empty()) fail(ErrorCode::kData, "the file is missing");
  if (cell.find('\0') != std::string_view::npos) fail(ErrorCode::kData, "the path holds a zero");
  const std::string folder = field.folder.empty()
                                 ? std::filesystem::path(place.file).parent_path().string()
                                 : field.folder;
  return join_path(folder, std::string(trim(cell)));
}

void check_file_cell(const CsvField& field, std::string_view cell, bool is_content,
                     const SourceLocation& place) {
  if (is_content && !cell.empty()) return;
  const std::string path = path_in_cell(field, cell, place);
  if (!file_exists(path)) MappedFile::open(path);  // rejects it
}

std::string read_file_cell(const CsvField& field, std::string_view cell, bool is_content,
                           const SourceLocation& place, Value& out) {
  std::string name = place.text();
  std::shared_ptr<MappedFile> file;
  std::span<const std::byte> content = bytes_of(cell);
  if (cell.empty()) fail(ErrorCode::kData, "the file is missing");
  if (!is_content) {
    name = path_in_cell(field, cell, place);
    file = MappedFile::open(name);
    content = file->bytes();
  }
  if (field.kind == ColumnKind::kAudio) {
    store_sound(field, formats::decode_sound(content, name), name, out);
    return {};
  }
  if (field.kind == ColumnKind::kMask) {
    store_mask(field, formats::decode_indices(content, name), out);
    return {};
  }
  const formats::SampleDepth depth = cell_dtype(field) == DType::kU16
                                         ? formats::SampleDepth::kSixteen
                                     : field.reduce_16_bit ? formats::SampleDepth::kReduced
                                                           : formats::SampleDepth::kEight;
  const formats::Image image = formats::decode_image(content, field.channels, name, depth);
  store_image(image, out);
  return image.warning;
}

void read_labels(const CsvField& field, const Vocabulary& vocabulary, std::string_view cell,
                 Value& out) {
  out.reset(cell_dtype(field), Dims{vocabulary.size()});
  std::fill_n(out.raw(), out.bytes(), std::byte{0});
  for (const std::string& label : list_of(cell, field.separator)) {
    const auto id = vocabulary.find(label);
    if (!id)
      fail(ErrorCode::kData, "'", printable(label), "' is not one of the ", vocabulary.size(),
           " labels", did_you_mean(label, vocabulary.tokens()));
    visit_dtype(out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      out.data<T>()[*id] = T(1);
    });
  }
}

std::string not_an_integer(std::string_view cell) {
  double number = 0;
  const bool is_large = formats::parse_number(cell, number) && std::abs(number) >= 0x1p53 &&
                        number == std::trunc(number) && std::isfinite(number);
  return str("'", printable(cell.substr(0, 40)), "' is ",
             is_large ? "outside the range of int64" : "not an integer");
}

void read_numbers(const CsvField& field, DType dtype, std::string_view cell, char decimal,
                  Value& out) {
  const std::vector<std::string> items = list_of(cell, field.separator);
  out.reset(dtype, field.shape);
  if (static_cast<int64_t>(items.size()) != out.size())
    fail(ErrorCode::kData, "has ", items.size(), " numbers, ", out.size(),
         " are expected for the shape ", str(field.shape));
  for (size_t i = 0; i < items.size(); ++i) {
    double number = 0;
    int64_t whole = 0;
    std::string scratch;
    const std::string_view item = with_point(items[i], decimal, scratch);
    if (!formats::parse_number(item, number))
      fail(ErrorCode::kData, "'", printable(items[i].substr(0, 40)), "' is not a number");
    if (is_integer(dtype)) {
      if (!formats::parse_integer(item, whole)) fail(ErrorCode::kData, not_an_integer(items[i]));
      if (!fits(whole, dtype))
        fail(ErrorCode::kData, whole, " does not fit ", text(dtype), "; use a wider dtype");
      visit_dtype(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>) out.data<T>()[i] = static_cast<T>(whole);
      });
      continue;
    }
    visit_dtype(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
        out.data<T>()[i] = T(static_cast<float>(number));
      else
        out.data<T>()[i] = clamped<T>(number);
    });
  }
}

namespace {

/// The 64 bits of a key.
uint64_t key_of(std::string_view item, DType dtype) {
  uint64_t key = 0;
  const std::errc error = read_key(item, dtype == DType::kI64, key);
  if (error == std::errc()) return key;
  const bool is_large = error == std::errc::result_out_of_range;
  fail(ErrorCode::kData, "'", printable(item.substr(0, 40)), "' is ",
       is_large ? "outside the range of" : "not a key of type", " ", text(dtype),
       is_large ? "" : " (strings can be hashed: kind: categorical with buckets)");
}

/// Calls `use(item)` for the items of a list that is not JSON, as long as it gives true.
template <class Use>
void for_each_item(std::string_view cell, std::string_view separator, const Use& use) {
  while (!cell.empty()) {
    const size_t end = separator.empty() ? std::string_view::npos : cell.find(separator);
    if (const std::string_view item = trim(cell.substr(0, end)); !item.empty() && !use(item))
      return;
    if (end == std::string_view::npos) return;
    cell.remove_prefix(end + separator.size());
  }
}

}  // namespace

void read_keys(const CsvField& field, DType dtype, std::string_view cell, Value& out) {
  thread_local std::vector<uint64_t> keys;
  keys.clear();
  const auto most = static_cast<size_t>(field.most);
  const auto add = [&](std::string_view item) {
    keys.push_back(key_of(item, dtype));
    return keys.size() < most;
  };
  if (trim(cell).starts_with('[')) {
    for (const std::string& item : list_of(cell, field.separator))
      if (!add(item)) break;
  } else {
    for_each_item(cell, field.separator, add);
  }
  out.reset(dtype, Dims{static_cast<int64_t>(keys.size())});
  if (!keys.empty()) std::memcpy(out.raw(), keys.data(), keys.size() * sizeof(uint64_t));
}

int64_t keys_in(const CsvField& field, std::string_view cell) {
  int64_t count = 0;
  for_each_item(cell, field.separator, [&](std::string_view) { return ++count < field.most; });
  return count;
}

std::vector<std::string> list_of(std::string_view cell, const std::string& separator) {
  std::vector<std::string> out;
  cell = trim(cell);
  if (cell.starts_with('[')) {
    constexpr int kMaxDepth = 16;
    const auto shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      return depth < kMaxDepth;
    };
    const nlohmann::json list = nlohmann::json::parse(cell.begin(), cell.end(), shallow, false);
    if (!list.is_array()) fail(ErrorCode::kData, "expected a list, the text is not JSON");
    const auto add = [&](const auto& self, const nlohmann::json& item) -> void {
      if (item.is_array())
        for (const nlohmann::json& inner : item) self(self, inner);
      else
        out.push_back(item.is_string() ? item.get<std::string>() : item.dump());
    };
    add(add, list);
    return out;
  }
  while (!cell.empty()) {
    const size_t end = separator.empty() ? std::string_view::npos : cell.find(separator);
    if (const std::string_view item = trim(cell.substr(0, end)); !item.empty())
      out.emplace_back(item);
    if (end == std::string_view::npos) break;
    cell.remove_prefix(end + separator.size());
  }
  return out;
}

void store_image(const formats::Image& image, Value& out) {
  const auto store = [&](const auto& pixels, auto* to) {
    const int64_t plane = image.height * image.width;
    const auto* from = pixels.data();
    if (image.channels == 3) {
      for (int64_t i = 0; i < plane; ++i)
        for (int64_t c = 0; c < 3; ++c) to[c * plane + i] = from[i * 3 + c];
      return;
    }
    for (int64_t c = 0; c < image.channels; ++c)
      for (int64_t i = 0; i < plane; ++i) to[c * plane + i] = from[i * image.channels + c];
  };
  const Dims shape = {image.channels, image.height, image.width};
  if (image.wide.empty()) {
    out.reset(DType::kU8, shape);
    store(image.pixels, out.data<uint8_t>());
  } else {
    out.reset(DType::kU16, shape);
    store(image.wide, out.data<uint16_t>());
  }
}

}  // namespace paddle::data
