// A reader of a stream: samples in the lines of a text file, numbers between spaces, the last of
// which is the target. The file is read from front to end and need not fit into memory.
//
//   data: {shuffle: false, train: {kind: text_stream.lines, path: log.txt, width: 4,
//          epoch_samples: 1000}}
//
//   paddle plugin build plugins/text_stream -o text_stream.so
//   paddle plugin check text_stream.so --key path=log.txt --key width=4 --key epoch_samples=200

#include <paddle/plugin/plugin.hpp>

#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <string>

namespace {

using namespace paddle::plugin;

class Lines {
 public:
  explicit Lines(const Options& options)
      : path_(options.text("path")), width_(options.integer("width")), file_(path_) {
    if (!file_) throw Failure(PADDLE_DATA, path_ + ": cannot be read");
    if (width_ < 1 || width_ > kMaxNumbers)
      throw Failure(PADDLE_CONFIG, "width: expected 1 to " + std::to_string(kMaxNumbers));
  }

  std::string describe() const {
    return "x: float32[" + std::to_string(width_) + "]\ny: float32[]";
  }

  bool next(const Sample& sample) {
    std::string line;
    if (!std::getline(file_, line)) return false;
    ++line_;
    byte_ += static_cast<int64_t>(line.size()) + 1;
    std::istringstream numbers(line);
    float* const x = sample.field<float>(0, {width_});
    float* const y = sample.field<float>(1, {});
    for (int64_t i = 0; i < width_; ++i) numbers >> x[i];
    std::string rest;
    if (!(numbers >> *y) || numbers >> rest)
      throw Failure(PADDLE_DATA,
                    location() + ": expected " + std::to_string(width_ + 1) + " numbers");
    return true;
  }

  // The place of a checkpoint: the byte and the line.
  std::string position() const { return std::to_string(byte_) + " " + std::to_string(line_); }
  void seek(const std::string& position) {
    std::istringstream in(position);
    if (!(in >> byte_ >> line_) || byte_ < 0)
      throw Failure(PADDLE_DATA, path_ + ": '" + position + "' is not a position");
    file_.clear();
    file_.seekg(byte_);
  }

  std::string location() const { return path_ + ":" + std::to_string(line_); }
  uint64_t fingerprint() const {
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0) return 0;
    return static_cast<uint64_t>(status.st_size) * 1000000007 +
           static_cast<uint64_t>(status.st_mtim.tv_sec);
  }

 private:
  static constexpr int64_t kMaxNumbers = 1 << 20;
  std::string path_;
  int64_t width_;
  std::ifstream file_;
  int64_t byte_ = 0, line_ = 0;  // of the next sample, and of the last one
};

}  // namespace

PADDLE_PLUGIN(text_stream, "1.0.0", plugin) {
  plugin.summary("reads samples from the lines of a text file, one after another");
  plugin.stream<Lines>("lines", "numbers in lines, the last one of each is the target",
                       "path: {type: path, required: true, doc: the file}\n"
                       "width: {type: integer, required: true, doc: numbers before the target}\n");
}
