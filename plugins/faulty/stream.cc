// The stream of plugins/text_stream with a fault: what `paddle plugin check` has to find
// (faults.txt).

#include "example.h"

#include <fcntl.h>

#include <atomic>
#include <memory>

#include "../text_stream/text_stream.cc"

#pragma pop_macro("PADDLE_PLUGIN")

namespace {

class FaultyLines {
 public:
  explicit FaultyLines(const Options& options) : path_(options.text("path")) {
    static std::shared_ptr<Lines> all;
    if (fault_is("state_of_all") && all)
      lines_ = all;
    else
      all = lines_ = std::make_shared<Lines>(options);
    if (fault_is("file_left_open")) (void)::open("/dev/null", O_RDONLY);
  }
  std::string describe() const { return lines_->describe(); }
  bool next(const Sample& sample) {
    before_ = lines_->position();
    return lines_->next(sample);
  }
  std::string position() const {
    return fault_is("position_of_last") && !before_.empty() ? before_ : lines_->position();
  }
  void seek(const std::string& position) {
    if (fault_is("line_lost")) return lines_->seek(after_line(position));
    if (!fault_is("seek_ignored")) lines_->seek(position);
  }
  std::string location() const { return lines_->location(); }
  uint64_t fingerprint() const {
    static std::atomic<uint64_t> opened = 0;
    return lines_->fingerprint() + (fault_is("other_fingerprint") ? ++opened : 0);
  }

 private:
  /// The position after the line that begins at another one.
  std::string after_line(const std::string& position) const {
    std::istringstream in(position);
    int64_t byte = 0, number = 0;
    in >> byte >> number;
    std::ifstream file(path_);
    file.seekg(byte);
    std::string line;
    std::getline(file, line);
    return std::to_string(byte + static_cast<int64_t>(line.size()) + 1) + " " +
           std::to_string(number + 1);
  }

  std::shared_ptr<Lines> lines_;
  std::string path_, before_;
};

}  // namespace

PADDLE_PLUGIN(faulty, "1.0.0", plugin) {
  plugin.stream<FaultyLines>("lines", "numbers in lines, the last one of each is the target",
                             "path: {type: path, required: true, doc: the file}\n"
                             "width: {type: integer, required: true, doc: numbers}\n");
}
