#include "formats/parquet/reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "formats/parquet/codecs.h"
#include "formats/parquet/thrift.h"

namespace paddle::formats {
namespace {

using parquet::Thrift;

// Numbers of the format.
enum Physical {
  kBool = 0,
  kInt32 = 1,
  kInt64 = 2,
  kInt96 = 3,
  kFloat32 = 4,
  kFloat64 = 5,
  kBytes = 6,
  kFixedBytes = 7
};
enum Encoding { kPlain = 0, kPlainDictionary = 2, kRle = 3, kRleDictionary = 8 };
enum PageType { kDataPage = 0, kDictionaryPage = 2, kDataPageV2 = 3 };

/// Bounds against files that declare more than they can hold. Repeated values take no space, so
/// that small files may have many rows.
constexpr int64_t kMaxValues = int64_t{1} << 26, kMaxValuesPerByte = 64;
constexpr int64_t kMaxPageBytes = int64_t{1} << 28, kMaxExpansion = 1 << 14;

template <class T>
T load(const char* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

/// Runs of repeated and bit-packed numbers of a fixed width.
class Hybrid {
 public:
  Hybrid(std::string_view bytes, int width, const std::string& place)
      : bytes_(bytes), width_(width), place_(place) {
    if (width < 0 || width > 32) fail(ErrorCode::kData, place_, ": numbers of ", width, " bits");
  }
  uint32_t next() {
    if (left_ == 0) start_run();
    --left_;
    if (!packed_) return value_;
    uint64_t out = 0;
    for (int got = 0; got < width_;) {
      const size_t byte = bit_ >> 3, shift = bit_ & 7;
      if (byte >= bytes_.size()) damaged();
      const int take = std::min<int>(width_ - got, 8 - static_cast<int>(shift));
      const uint64_t bits = (static_cast<uint8_t>(bytes_[byte]) >> shift) & ((1u << take) - 1);
      out |= bits << got;
      got += take;
      bit_ += static_cast<size_t>(take);
    }
    if (left_ == 0) at_ = run_end_;
    return static_cast<uint32_t>(out);
  }

 private:
  [[noreturn]] void damaged() const {
    fail(ErrorCode::kData, place_, ": the numbers of a page end early");
  }
  void start_run() {
    uint64_t head = 0;
    for (int shift = 0;; shift += 7) {
      if (at_ >= bytes_.size() || shift > 28) damaged();
      const auto b = static_cast<uint8_t>(bytes_[at_++]);
      head |= uint64_t{b & 127u} << shift;
      if (b < 128) break;
    }
    left_ = head >> 1;
    if (left_ == 0) damaged();
    packed_ = head & 1;
    if (packed_) {
      bit_ = at_ * 8;
      run_end_ = at_ + left_ * static_cast<size_t>(width_);
      left_ *= 8;
      return;
    }
    const auto bytes = static_cast<size_t>((width_ + 7) / 8);
    if (bytes > bytes_.size() - at_) damaged();
    value_ = 0;
    for (size_t i = 0; i < bytes; ++i)
      value_ |= static_cast<uint32_t>(static_cast<uint8_t>(bytes_[at_ + i])) << (8 * i);
    at_ += bytes;
  }

  std::string_view bytes_;
  int width_;
  std::string place_;
  size_t at_ = 0, bit_ = 0, run_end_ = 0;
  uint64_t left_ = 0;
  bool packed_ = false;
  uint32_t value_ = 0;
};

struct PageHead {
  int type = -1, encoding = -1;
  int64_t unpacked = 0, packed = 0, values = 0;
  int64_t definition_bytes = 0, repetition_bytes = 0;  ///< version 2
  bool is_compressed = true;
};

PageHead read_page_head(Thrift& thrift) {
  PageHead out;
  thrift.read_struct([&](int16_t id, Thrift::Type type) {
    if (type == Thrift::kI32 && id <= 3) {
      const int64_t value = thrift.integer();
      if (id == 1) out.type = static_cast<int>(value);
      if (id == 2) out.unpacked = value;
      if (id == 3) out.packed = value;
      return true;
    }
    if (type != Thrift::kStruct || (id != 5 && id != 7 && id != 8)) return false;
    const bool is_second = id == 8;
    thrift.read_struct([&](int16_t own, Thrift::Type own_type) {
      if (is_second && own == 7) {
        out.is_compressed = own_type == Thrift::kTrue;
        return own_type == Thrift::kTrue || own_type == Thrift::kFalse;
      }
      if (own_type != Thrift::kI32) return false;
      const int64_t value = thrift.integer();
      if (own == 1) out.values = value;
      if (own == (is_second ? 4 : 2)) out.encoding = static_cast<int>(value);
      if (is_second && own == 5) out.definition_bytes = value;
      if (is_second && own == 6) out.repetition_bytes = value;
      return true;
    });
    return true;
  });
  return out;
}

/// ISO 8601 of a number of days since 1970 (Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
std::string date_text(int64_t days) {
  const int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
  const int64_t doe = z - era * 146097;
  const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
  const int64_t day = doy - (153 * mp + 2) / 5 + 1, month = mp < 10 ? mp + 3 : mp - 9;
  const int64_t year = yoe + era * 400 + (month <= 2);
  const auto two = [](int64_t n) { return str(n < 10 ? "0" : "", n); };
  return str(year, "-", two(month), "-", two(day));
}

struct Element {
  std::string name;
  std::optional<int> type;
  int repetition = 0;  ///< 0 required, 1 optional, 2 repeated
  int64_t children = 0;
  int converted = -1;
  int logical = -1;  ///< the field of the union that is set
};

Element read_element(Thrift& thrift) {
  Element out;
  thrift.read_struct([&](int16_t id, Thrift::Type type) {
    if (id == 4 && type == Thrift::kBinary) {
      out.name = std::string(thrift.binary());
      return true;
    }
    if (id == 10 && type == Thrift::kStruct) {
      thrift.read_struct([&](int16_t which, Thrift::Type) {
        out.logical = which;
        return false;
      });
      return true;
    }
    if (type != Thrift::kI32 || (id != 1 && id != 3 && id != 5 && id != 6)) return false;
    const int64_t value = thrift.integer();
    if (id == 1) out.type = static_cast<int>(value);
    if (id == 3) out.repetition = static_cast<int>(value);
    if (id == 5) out.children = value;
    if (id == 6) out.converted = static_cast<int>(value);
    return true;
  });
  return out;
}

ParquetColumn describe(const Element& element, bool is_nested) {
  using Kind = ParquetColumn::Kind;
  constexpr int kDecimal = 5, kDate = 6, kFirstUnsigned = 11, kLastUnsigned = 14;
  constexpr int kLogicalDecimal = 5, kLogicalFloat16 = 15;
  ParquetColumn out{.name = element.name, .is_optional = element.repetition == 1};
  if (is_nested || element.repetition == 2) out.problem = "is a list or a struct";
  if (element.converted == kDecimal || element.logical == kLogicalDecimal)
    out.problem = "holds decimal numbers; write them as float64";
  switch (element.type.value_or(-1)) {
    case kBool:
      out.kind = Kind::kBoolean;
      break;
    case kInt32:
    case kInt64:
      out.kind = element.converted == kDate ? Kind::kDate
                 : element.converted >= kFirstUnsigned && element.converted <= kLastUnsigned
                     ? Kind::kUnsigned
                     : Kind::kInteger;
      break;
    case kFloat32:
      out.kind = Kind::kFloat;
      break;
    case kFloat64:
      out.kind = Kind::kDouble;
      break;
    case kBytes:
      out.kind = Kind::kText;
      break;
    default:
      if (out.problem.empty())
        out.problem = element.logical == kLogicalFloat16
                          ? "holds float16; write it as float32"
                          : "has a type that is not supported (int96 or fixed bytes)";
  }
  return out;
}

}  // namespace

std::string ParquetCells::text(int64_t row) const {
  const auto at = static_cast<size_t>(row);
  if (is_empty(row)) return "";
  const auto written = [](auto number) {
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, number).ptr;
    return std::string(text, end);
  };
  switch (kind_) {
    case ParquetColumn::Kind::kFloat:
      return written(floats_[at]);
    case ParquetColumn::Kind::kDouble:
      return written(numbers_[at]);
    case ParquetColumn::Kind::kText:
      return texts_[static_cast<size_t>(integers_[at])];
    case ParquetColumn::Kind::kDate:
      return date_text(integers_[at]);
    case ParquetColumn::Kind::kUnsigned:
      return written(static_cast<uint64_t>(integers_[at]));
    default:
      return written(integers_[at]);
  }
}

/// Decodes the pages of a column, one row group after the other.
class ParquetReader::Decoder {
 public:
  Decoder(const ParquetReader& file, size_t column, ParquetCells& out)
      : file_(file), column_(column), leaf_(file.leaves_[column]), out_(out) {
    place_ = str(file.path_, ": column '", file.columns_[column].name, "'");
  }
  void decode(const Chunk& chunk) {
    const std::string_view bytes = file_.file_->view().substr(static_cast<size_t>(chunk.begin),
                                                              static_cast<size_t>(chunk.size));
    dictionary_begin_ = dictionary_size_ = 0;
    int64_t values = 0;
    for (size_t at = 0; values < chunk.values;) {
      Thrift thrift(bytes.substr(at), place_);
      const PageHead head = read_page_head(thrift);
      at += thrift.position();
      const auto packed = static_cast<uint64_t>(head.packed);
      if (head.packed < 0 || packed > bytes.size() - at || head.unpacked < 0 ||
          head.unpacked > kMaxPageBytes ||
          head.unpacked > head.packed * kMaxExpansion + (1 << 16) || head.values < 0 ||
          head.values > chunk.values)
        fail(ErrorCode::kData, place_, ": a page declares a wrong size");
      page(head, bytes.substr(at, packed), static_cast<parquet::Codec>(chunk.codec));
      at += packed;
      if (head.type == kDataPage || head.type == kDataPageV2) {
        if (head.values == 0) fail(ErrorCode::kData, place_, ": a page without values");
        values += head.values;
      }
    }
    if (values != chunk.values) fail(ErrorCode::kData, place_, ": a page has too many values");
  }

 private:
  void page(const PageHead& head, std::string_view bytes, parquet::Codec codec) {
    if (head.type == kDictionaryPage) {
      if (head.encoding != kPlain && head.encoding != kPlainDictionary) reject(head.encoding);
      const std::string content =
          parquet::decompress(codec, bytes, static_cast<uint64_t>(head.unpacked), place_);
      ParquetCells dictionary;
      dictionary.kind_ = out_.kind_;
      plain(content, head.values, dictionary);
      keep_dictionary(std::move(dictionary), head.values);
      return;
    }
    if (head.type != kDataPage && head.type != kDataPageV2) return;  // an index
    std::string levels, content;
    if (head.type == kDataPageV2) {
      const int64_t before = head.repetition_bytes + head.definition_bytes;
      if (head.repetition_bytes < 0 || head.definition_bytes < 0 ||
          before > static_cast<int64_t>(bytes.size()) || before > head.unpacked)
        fail(ErrorCode::kData, place_, ": a page declares a wrong size");
      levels = std::string(bytes.substr(static_cast<size_t>(head.repetition_bytes),
                                        static_cast<size_t>(head.definition_bytes)));
      content = parquet::decompress(head.is_compressed ? codec : parquet::Codec::kNone,
                                    bytes.substr(static_cast<size_t>(before)),
                                    static_cast<uint64_t>(head.unpacked - before), place_);
    } else {
      content = parquet::decompress(codec, bytes, static_cast<uint64_t>(head.unpacked), place_);
      if (leaf_.levels > 0) {
        if (content.size() < 4) fail(ErrorCode::kData, place_, ": a page ends early");
        const auto size = load<uint32_t>(content.data());
        if (size > content.size() - 4) fail(ErrorCode::kData, place_, ": a page ends early");
        levels = content.substr(4, size);
        content.erase(0, 4 + size_t{size});
      }
    }
    std::vector<bool> present;
    int64_t there = head.values;
    if (leaf_.levels > 0) {
      Hybrid reader(levels, 1, place_);
      there = 0;
      for (int64_t i = 0; i < head.values; ++i) {
        present.push_back(reader.next() == 1);
        there += present.back();
      }
    }
    ParquetCells cells;
    cells.kind_ = out_.kind_;
    values(head, content, there, cells);
    append(cells, present, head.values);
  }

  void values(const PageHead& head, std::string_view content, int64_t count, ParquetCells& to) {
    switch (head.encoding) {
      case kPlain:
        plain(content, count, to);
        return;
      case kPlainDictionary:
      case kRleDictionary: {
        if (content.empty() && count == 0) return;
        if (content.empty()) fail(ErrorCode::kData, place_, ": a page ends early");
        Hybrid reader(content.substr(1), static_cast<uint8_t>(content[0]), place_);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t at = reader.next();
          if (at >= dictionary_size_)
            fail(ErrorCode::kData, place_, ": value ", at, " of a dictionary of ",
                 dictionary_size_);
          take(at, to);
        }
        return;
      }
      case kRle:
        if (leaf_.physical == kBool && content.size() >= 4) {
          Hybrid reader(content.substr(4), 1, place_);
          for (int64_t i = 0; i < count; ++i) to.integers_.push_back(reader.next());
          return;
        }
        [[fallthrough]];
      default:
        reject(head.encoding);
    }
  }

  [[noreturn]] void reject(int encoding) const {
    fail(ErrorCode::kData, place_, ": encoding ", encoding,
         " is not supported; write the file with plain or dictionary encoding");
  }

  /// Numbers one after the other, texts with their lengths before them.
  void plain(std::string_view content, int64_t count, ParquetCells& to) const {
    const auto need = [&](size_t bytes) {
      if (count < 0 || content.size() / bytes < static_cast<size_t>(count))
        fail(ErrorCode::kData, place_, ": a page ends early");
    };
    const char* at = content.data();
    switch (leaf_.physical) {
      case kBool:
        if (count > static_cast<int64_t>(content.size()) * 8)
          fail(ErrorCode::kData, place_, ": a page ends early");
        for (int64_t i = 0; i < count; ++i) to.integers_.push_back(at[i / 8] >> (i % 8) & 1);
        return;
      case kInt32:
        need(4);
        for (int64_t i = 0; i < count; ++i)
          to.integers_.push_back(to.kind_ == ParquetColumn::Kind::kUnsigned
                                     ? int64_t{load<uint32_t>(at + i * 4)}
                                     : int64_t{load<int32_t>(at + i * 4)});
        return;
      case kInt64:
        need(8);
        for (int64_t i = 0; i < count; ++i) to.integers_.push_back(load<int64_t>(at + i * 8));
        return;
      case kFloat32:
        need(4);
        for (int64_t i = 0; i < count; ++i) to.floats_.push_back(load<float>(at + i * 4));
        return;
      case kFloat64:
        need(8);
        for (int64_t i = 0; i < count; ++i) to.numbers_.push_back(load<double>(at + i * 8));
        return;
      default:
        break;
    }
    for (int64_t i = 0; i < count; ++i) {
      if (content.size() < 4) fail(ErrorCode::kData, place_, ": a page ends early");
      const auto size = load<uint32_t>(content.data());
      if (size > content.size() - 4) fail(ErrorCode::kData, place_, ": a page ends early");
      to.integers_.push_back(static_cast<int64_t>(to.texts_.size()));
      to.texts_.emplace_back(content.substr(4, size));
      content.remove_prefix(4 + size_t{size});
    }
  }

  void keep_dictionary(ParquetCells dictionary, int64_t size) {
    dictionary_size_ = size;
    dictionary_begin_ = static_cast<int64_t>(out_.texts_.size());
    for (std::string& text : dictionary.texts_) out_.texts_.push_back(std::move(text));
    dictionary.texts_.clear();
    dictionary_ = std::move(dictionary);
  }
  void take(int64_t at, ParquetCells& to) const {
    const auto i = static_cast<size_t>(at);
    switch (out_.kind_) {
      case ParquetColumn::Kind::kFloat:
        to.floats_.push_back(dictionary_.floats_[i]);
        return;
      case ParquetColumn::Kind::kDouble:
        to.numbers_.push_back(dictionary_.numbers_[i]);
        return;
      case ParquetColumn::Kind::kText:
        to.integers_.push_back(dictionary_begin_ + at);
        return;
      default:
        to.integers_.push_back(dictionary_.integers_[i]);
    }
  }

  /// Adds the values of a page; cells without one get a place, too.
  void append(ParquetCells& cells, const std::vector<bool>& present, int64_t count) {
    // Texts of the page itself come after those of all before.
    const auto shift = cells.texts_.empty() ? 0 : static_cast<int64_t>(out_.texts_.size());
    for (std::string& text : cells.texts_) out_.texts_.push_back(std::move(text));
    size_t next = 0;
    const auto add = [&](auto& from, auto& to, auto moved) {
      for (int64_t i = 0; i < count; ++i) {
        const bool is_there = present.empty() || present[static_cast<size_t>(i)];
        to.push_back(is_there ? from.at(next++) + moved : 0);
      }
    };
    switch (out_.kind_) {
      case ParquetColumn::Kind::kFloat:
        add(cells.floats_, out_.floats_, 0.0f);
        break;
      case ParquetColumn::Kind::kDouble:
        add(cells.numbers_, out_.numbers_, 0.0);
        break;
      default:
        add(cells.integers_, out_.integers_, shift);
    }
    if (leaf_.levels > 0) out_.present_.insert(out_.present_.end(), present.begin(), present.end());
  }

  const ParquetReader& file_;
  size_t column_;
  Leaf leaf_;
  ParquetCells& out_;
  std::string place_;
  ParquetCells dictionary_;
  int64_t dictionary_size_ = 0, dictionary_begin_ = 0;
};

ParquetReader::ParquetReader(const std::string& path) : path_(path), file_(MappedFile::open(path)) {
  read_footer();
}

void ParquetReader::read_footer() {
  const std::string_view bytes = file_->view();
  constexpr size_t kMin = 12;
  if (bytes.size() < kMin || !bytes.starts_with("PAR1") || !bytes.ends_with("PAR1"))
    fail(ErrorCode::kData, path_, bytes.ends_with("PARE") ? ": is encrypted" : ": is not Parquet");
  const auto size = load<uint32_t>(bytes.data() + bytes.size() - 8);
  if (size > bytes.size() - kMin) fail(ErrorCode::kData, path_, ": the footer is damaged");
  Thrift thrift(bytes.substr(bytes.size() - 8 - size, size), path_);
  std::vector<Element> schema;
  const auto damaged = [&](const char* what) {
    fail(ErrorCode::kData, path_, ": the footer is damaged: ", what);
  };
  const auto read_chunk = [&](size_t column) {
    Chunk chunk{.column = column};
    int64_t data_page = -1, dictionary_page = -1;
    thrift.read_struct([&](int16_t id, Thrift::Type type) {
      if (id != 3 || type != Thrift::kStruct) return false;
      thrift.read_struct([&](int16_t own, Thrift::Type own_type) {
        if (own_type != Thrift::kI32 && own_type != Thrift::kI64) return false;
        const int64_t value = thrift.integer();
        if (own == 4) chunk.codec = static_cast<int>(value);
        if (own == 5) chunk.values = value;
        if (own == 7) chunk.size = value;
        if (own == 9) data_page = value;
        if (own == 11) dictionary_page = value;
        return true;
      });
      return true;
    });
    // Some writers give 0 where there is no dictionary.
    chunk.begin = dictionary_page > 0 && dictionary_page < data_page ? dictionary_page : data_page;
    const auto end = static_cast<int64_t>(bytes.size());
    if (chunk.begin < 0 || chunk.size < 0 || chunk.begin > end || chunk.size > end - chunk.begin)
      damaged("a column lies outside of the file");
    if (chunk.values < 0 || chunk.values > std::max(kMaxValues, chunk.size * kMaxValuesPerByte))
      damaged("a column declares more values than it can hold");
    chunks_.push_back(chunk);
  };
  thrift.read_struct([&](int16_t id, Thrift::Type type) {
    if (id == 2 && type == Thrift::kList) {
      thrift.read_list([&](Thrift::Type) { schema.push_back(read_element(thrift)); });
      return true;
    }
    if (id == 3 && type == Thrift::kI64) {
      rows_ = thrift.integer();
      return true;
    }
    if (id != 4 || type != Thrift::kList) return false;
    thrift.read_list([&](Thrift::Type) {
      thrift.read_struct([&](int16_t own, Thrift::Type own_type) {
        if (own != 1 || own_type != Thrift::kList) return false;
        size_t column = 0;
        thrift.read_list([&](Thrift::Type) { read_chunk(column++); });
        return true;
      });
    });
    return true;
  });
  // The elements after the root, in order, with the numbers of children that are still to come.
  if (schema.empty()) damaged("there is no schema");
  std::vector<std::pair<int64_t, bool>> open = {{schema[0].children, false}};
  std::string outermost;  // the column of the table that a leaf is part of
  for (size_t i = 1; i < schema.size(); ++i) {
    while (!open.empty() && open.back().first <= 0) open.pop_back();
    if (open.empty()) damaged("the schema has too many elements");
    --open.back().first;
    const bool is_nested = open.size() > 1;
    if (schema[i].children > 0) {
      if (!is_nested) outermost = schema[i].name;
      open.emplace_back(schema[i].children, true);
      continue;
    }
    columns_.push_back(describe(schema[i], is_nested));
    if (is_nested) columns_.back().name = outermost + "." + schema[i].name;
    leaves_.push_back({schema[i].type.value_or(-1), columns_.back().is_optional ? 1 : 0});
  }
  std::vector<int64_t> totals(columns_.size(), 0);
  for (const Chunk& chunk : chunks_) {
    if (chunk.column >= columns_.size()) damaged("a row group has too many columns");
    totals[chunk.column] += chunk.values;
  }
  if (rows_ < 0) damaged("the number of rows is negative");
  for (size_t c = 0; c < totals.size(); ++c)
    if (columns_[c].problem.empty() && totals[c] != rows_)
      damaged("a column has a different number of values than there are rows");
}

ParquetCells ParquetReader::read(size_t column) const {
  const ParquetColumn& info = columns_[column];
  if (!info.problem.empty())
    fail(ErrorCode::kData, path_, ": column '", info.name, "' ", info.problem);
  ParquetCells out;
  out.kind_ = info.kind;
  Decoder decoder(*this, column, out);
  for (const Chunk& chunk : chunks_)
    if (chunk.column == column) decoder.decode(chunk);
  return out;
}

}  // namespace paddle::formats
