#pragma once
// Windows of a long row of tokens: `context` tokens, and the same shifted by one as targets.

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/options.h"

namespace paddle::data {

/// Tokens of fixed width that lie one after the other in files or in memory: several files are one
/// row.
class TokenRow {
 public:
  /// Files of little-endian integers of `width` bytes (1, 2 or 4), mapped. kData for a file whose
  /// size is not a multiple of it.
  static TokenRow of_files(const std::vector<std::string>& paths, int width,
                           int64_t vocabulary_size);
  /// Ids in memory, in as few bytes each as the vocabulary needs.
  class Builder {
   public:
    explicit Builder(int64_t vocabulary_size);
    void add(int64_t id);
    TokenRow build(std::string path) &&;

   private:
    int width_;
    int64_t vocabulary_size_;
    std::vector<std::byte> bytes_;
  };

  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  int64_t vocabulary_size() const { return vocabulary_size_; }
  /// Tokens [begin, begin + count). kData, with the file and the place in it, for an id that the
  /// vocabulary does not have.
  void read(int64_t begin, int64_t count, int64_t* out) const;
  /// "tokens.bin, token 7".
  std::string location(int64_t token) const;

 private:
  struct Part {
    std::string path;
    std::shared_ptr<const void> owner;
    const std::byte* data = nullptr;
  };
  size_t part_of(int64_t token) const;
  int64_t begin_of(size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }

  std::vector<Part> parts_;
  std::vector<int64_t> ends_;
  int width_ = 1;
  int64_t vocabulary_size_ = 0;
};

/// Fields `tokens` and `targets`; with an end token also `segments`, a number for each document of
/// a window, and `positions`, which begin at 0 in each. Nothing is predicted across documents: the
/// target of an end token is -100.
class WindowDataset : public Dataset {
 public:
  /// `kind` and `paths` are named in errors. kConfig and kData for windows that do not fit.
  WindowDataset(std::string kind, std::vector<std::string> paths, WindowOptions options,
                std::shared_ptr<const TokenRow> row, const DatasetOptions& part);
  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext& context, Sample& out) const override;
  std::string location(int64_t index, int64_t field, int64_t element) const override;
  std::vector<std::string> paths() const override { return paths_; }
  /// Of more than 2^24 tokens, runs of equal length stand for their tokens.
  std::vector<bool> used_sources() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  void mark_documents(const int64_t* tokens, Sample& out) const;

  WindowOptions options_;
  std::shared_ptr<const TokenRow> row_;
  std::vector<std::string> paths_;
  int64_t begin_ = 0, end_ = 0, starts_ = 0, stride_ = 0, size_ = 0;
  std::vector<Field> fields_;
};

}  // namespace paddle::data
