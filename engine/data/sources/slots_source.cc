// Records of slot files, PaddlePaddle's MultiSlot text: in every line, for each slot in turn, how
// many values it has and these values, separated by spaces. A cell is a slot's values. The file
// stays mapped; of each record only the place is kept.

#include <set>

#include "base/files.h"
#include "data/config/dataset_config.h"
#include "data/dataset_kind.h"
#include "data/sources/record_source.h"
#include "formats/compressed/compressed.h"
#include "formats/csv.h"

namespace paddle::data {
namespace {

class SlotsSource final : public RecordSource {
 public:
  SlotsSource(const std::string& path, const std::vector<std::string>& slots)
      : path_(path), file_(formats::open_data_file(path)) {
    if (slots.empty()) fail(ErrorCode::kConfig, "slots: no slot is named");
    std::set<std::string> seen;
    for (const std::string& slot : slots)
      if (slot.empty() || !seen.insert(slot).second)
        fail(ErrorCode::kConfig, "slots: '", slot, "' is ",
             slot.empty() ? "no name" : "named twice");
    names_ = slots;
    const std::string_view text = file_->view();
    for (size_t at = 0; at < text.size();) {
      starts_.push_back(at);
      const size_t end = text.find('\n', at);
      if (end == std::string_view::npos) break;
      at = end + 1;
    }
    while (!starts_.empty() && trim(text.substr(starts_.back())).empty()) starts_.pop_back();
    if (starts_.empty()) fail(ErrorCode::kData, path_, ": the file is empty");
  }
  int64_t size() const override { return static_cast<int64_t>(starts_.size()); }
  void cells(int64_t record, std::vector<std::string_view>& out, std::string&) const override {
    std::string_view line = file_->view().substr(starts_[static_cast<size_t>(record)]);
    line = line.substr(0, line.find('\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto reject = [&](const auto&... what) {
      throw Error(ErrorCode::kData, str(what...), location(record));
    };
    out.clear();
    for (const std::string& name : names_) {
      const std::string_view number = next_word(line);
      int64_t count = 0;
      if (number.empty())
        reject("the line ends before slot '", name, "', ", out.size(), " of ", names_.size(),
               " slots are there");
      if (number.size() == 1 && number[0] >= '0' && number[0] <= '9')
        count = number[0] - '0';
      else if (!formats::parse_integer(number, count) || count < 0)
        reject("slot '", name, "': expected the number of its values, found '",
               printable(number.substr(0, 40)), "'");
      std::string_view cell;
      for (int64_t i = 0; i < count; ++i) {
        const std::string_view word = next_word(line);
        if (word.empty())
          reject("slot '", name, "' should have ", count, " values, the line ends after ", i);
        cell = i == 0
                   ? word
                   : std::string_view(cell.data(),
                                      static_cast<size_t>(word.data() - cell.data()) + word.size());
      }
      out.push_back(cell);
    }
    if (const std::string_view rest = next_word(line); !rest.empty())
      reject("unexpected text '", printable(rest.substr(0, 40)), "' after the last slot, '",
             names_.back(), "'");
  }
  SourceLocation location(int64_t record) const override {
    return {path_, static_cast<int>(record + 1)};
  }
  std::vector<std::string> paths() const override { return {path_}; }

 private:
  /// Takes the next word from the front of a line; "" at its end.
  static std::string_view next_word(std::string_view& line) {
    const char *at = line.data(), *const end = at + line.size();
    while (at != end && *at == ' ') ++at;
    const char* const begin = at;
    while (at != end && *at != ' ') ++at;
    line.remove_prefix(static_cast<size_t>(at - line.data()));
    return {begin, static_cast<size_t>(at - begin)};
  }

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::vector<size_t> starts_;  ///< of the records, which are lines
};

}  // namespace

DatasetKind slots_kind() {
  DatasetKind kind = make_record_kind(
      "slots", "slot files; * and ? match several", {".csv", ".tsv", ".tab", ".txt"},
      [](const CsvFileOptions& options, const std::string& path) {
        return std::make_unique<SlotsSource>(path, options.column_names);
      });
  kind.keys = [] {
    config::Schema s;
    s.add("path", paths_spec("slot files; * and ? match several"))
        .add("slots", config::Spec::list(config::Spec::text())
                          .required()
                          .doc("names of all slots, in the order of a line"))
        .add("fields", fields_key());
    return s;
  };
  kind.read = [](const config::Section& s) -> DatasetSource {
    CsvFileOptions o = read_records(s, "slots");
    o.column_names = s.texts("slots");
    // The values of a slot are separated as they are in the file.
    const std::vector<config::Section> fields = s.sections("fields");
    for (size_t i = 0; i < fields.size(); ++i)
      if (!fields[i].has("separator")) o.fields[i].separator = " ";
    return o;
  };
  return kind;
}

}  // namespace paddle::data
