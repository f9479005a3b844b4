// Records of JSON lines: an object a line, whose keys are columns. `a.b` is the key b of the object
// at a. Strings are cells as they are; other values are cells as JSON writes them, except that true
// and false are 1 and 0, and null is an empty cell.

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "data/record_source.h"

namespace paddle::data {
namespace {

using nlohmann::json;

/// Deeper values are refused: the parser recurses.
constexpr int kMaxNesting = 64;

class JsonlSource final : public RecordSource {
 public:
  JsonlSource(const std::string& path, const std::vector<std::string>& columns)
      : path_(path), file_(MappedFile::open(path)) {
    const std::string_view text = file_->view();
    int64_t line = 1;
    for (size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0; at < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (!trim(text.substr(at, end - at)).empty()) records_.push_back({at, end - at, line});
      at = end + 1;
    }
    if (records_.empty()) fail(ErrorCode::kData, path_, ": the file is empty");
    names_ = columns;
    const json first = parse(0);
    if (names_.empty()) {
      for (const auto& [key, value] : first.items()) names_.push_back(key);
      if (names_.empty())
        throw Error(ErrorCode::kData, "the first record has no keys", location(0));
    }
    check_names(first);
  }
  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  bool may_lack_columns() const override { return true; }
  void cells(int64_t record, std::vector<std::string_view>& out,
             std::string& scratch) const override {
    const json object = parse(record);
    scratch.clear();
    std::vector<size_t> ends;
    for (const std::string& name : names_) {
      if (const json* value = find(object, name)) append(*value, scratch);
      ends.push_back(scratch.size());
    }
    split_cells(scratch, ends, out);
  }
  SourceLocation location(int64_t record) const override {
    return {path_, static_cast<int>(records_[static_cast<size_t>(record)].line)};
  }
  std::vector<std::string> paths() const override { return {path_}; }

 private:
  struct Record {
    size_t offset = 0, length = 0;
    int64_t line = 0;
  };

  json parse(int64_t record) const {
    const Record& r = records_[static_cast<size_t>(record)];
    const std::string_view text = file_->view().substr(r.offset, r.length);
    bool too_deep = false;
    const auto callback = [&](int depth, json::parse_event_t, json&) {
      too_deep = too_deep || depth > kMaxNesting;
      return !too_deep;
    };
    const json out = json::parse(text.begin(), text.end(), callback, false);
    if (too_deep || !out.is_object())
      throw Error(ErrorCode::kData,
                  too_deep ? str("more than ", kMaxNesting, " values inside each other")
                  : out.is_discarded()
                      ? std::string("expected a JSON object, the text is not JSON")
                      : "expected a JSON object, found " + std::string(out.type_name()),
                  location(record));
    return out;
  }

  static const json* find(const json& object, const std::string& name) {
    if (const auto it = object.find(name); it != object.end()) return &*it;
    const size_t dot = name.find('.');
    if (dot == std::string::npos) return nullptr;
    const auto outer = object.find(name.substr(0, dot));
    return outer == object.end() || !outer->is_object() ? nullptr
                                                        : find(*outer, name.substr(dot + 1));
  }

  static void append(const json& value, std::string& out) {
    if (value.is_string())
      out += value.get_ref<const std::string&>();
    else if (value.is_boolean())
      out += value.get<bool>() ? '1' : '0';
    else if (!value.is_null())
      out += value.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  /// A key that none of the first records has is a typing error.
  void check_names(const json& first) const {
    constexpr int64_t kLooked = 1000;
    std::vector<std::string> known;
    for (const auto& [key, value] : first.items()) known.push_back(key);
    std::vector<std::string> missing;
    for (const std::string& name : names_)
      if (!find(first, name)) missing.push_back(name);
    for (int64_t i = 1; !missing.empty() && i < std::min(size(), kLooked); ++i) {
      json object;
      try {
        object = parse(i);
      } catch (const Error&) {
        continue;  // reading it reports that
      }
      std::erase_if(missing, [&](const std::string& name) { return find(object, name); });
    }
    if (!missing.empty())
      fail(ErrorCode::kData, path_, ": no record has the key '", missing[0], "'",
           did_you_mean(missing[0], known), "; the first one has: ", join(known, ", "));
  }

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::vector<Record> records_;
};

}  // namespace

RecordSourcePtr open_jsonl(const std::string& path, const std::vector<std::string>& columns) {
  return std::make_unique<JsonlSource>(path, columns);
}

}  // namespace paddle::data
