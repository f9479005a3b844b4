#include "data/datasets/token_windows.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace paddle::data {
namespace {

constexpr int64_t kIgnoredTarget = -100;

int64_t id_at(const std::byte* data, int width, int64_t i) {
  const auto at = [&](auto value) {
    std::memcpy(&value, data + i * width, sizeof value);
    return static_cast<int64_t>(value);
  };
  return width == 1 ? at(uint8_t{}) : width == 2 ? at(uint16_t{}) : at(uint32_t{});
}

}  // namespace

TokenRow TokenRow::of_files(const std::vector<std::string>& paths, int width,
                            int64_t vocabulary_size) {
  TokenRow out;
  out.width_ = width;
  out.vocabulary_size_ = vocabulary_size;
  for (const std::string& path : paths) {
    const auto file = MappedFile::open(path);
    if (file->size() % static_cast<size_t>(width) != 0)
      fail(ErrorCode::kData, path, ": has ", file->size(), " bytes, expected a multiple of ", width,
           " (`dtype`)");
    out.parts_.push_back({path, file, file->data()});
    out.ends_.push_back(out.size() + static_cast<int64_t>(file->size()) / width);
  }
  return out;
}

TokenRow::Builder::Builder(int64_t vocabulary_size)
    : width_(vocabulary_size <= 256     ? 1
             : vocabulary_size <= 65536 ? 2
                                        : 4),
      vocabulary_size_(vocabulary_size) {}

void TokenRow::Builder::add(int64_t id) {
  const auto value = static_cast<uint32_t>(id);
  for (int b = 0; b < width_; ++b) bytes_.push_back(static_cast<std::byte>(value >> (8 * b)));
}

TokenRow TokenRow::Builder::build(std::string path) && {
  TokenRow out;
  out.width_ = width_;
  out.vocabulary_size_ = vocabulary_size_;
  out.ends_ = {static_cast<int64_t>(bytes_.size()) / width_};
  bytes_.shrink_to_fit();
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes_));
  out.parts_.push_back({std::move(path), owner, owner->data()});
  return out;
}

size_t TokenRow::part_of(int64_t token) const {
  return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), token) - ends_.begin());
}

void TokenRow::read(int64_t begin, int64_t count, int64_t* out) const {
  for (size_t p = part_of(begin); count > 0; ++p) {
    const int64_t first = begin - begin_of(p), length = std::min(count, ends_[p] - begin);
    for (int64_t i = 0; i < length; ++i) {
      const int64_t id = id_at(parts_[p].data, width_, first + i);
      if (id >= vocabulary_size_)
        throw Error(ErrorCode::kData,
                    str("token ", first + i, " is ", id, ", expected ids below ", vocabulary_size_,
                        " (`vocabulary_size`)"),
                    {parts_[p].path});
      *out++ = id;
    }
    begin += length;
    count -= length;
  }
}

std::string TokenRow::location(int64_t token) const {
  const size_t p = part_of(token);
  return str(parts_[p].path, ", token ", token - begin_of(p));
}

WindowDataset::WindowDataset(std::string kind, std::vector<std::string> paths,
                             WindowOptions options, std::shared_ptr<const TokenRow> row,
                             const DatasetOptions& part)
    : options_(std::move(options)), row_(std::move(row)) {
  for (const std::string& path : paths)
    paths_.push_back(std::filesystem::absolute(path).lexically_normal().string());
  const std::string name = paths.size() > 1 ? str(paths[0], " and further files") : paths[0];
  if (options_.context < 1) fail(ErrorCode::kConfig, kind, ": context is ", options_.context);
  if (row_->size() == 0) fail(ErrorCode::kData, name, ": the ", kind, " is empty");
  const Part kept = resolve_part(part, row_->size(), true);
  begin_ = kept.begin, end_ = kept.end;
  starts_ = end_ - begin_ - options_.context;
  if (starts_ < 1)
    fail(ErrorCode::kData, name, ": ", end_ - begin_, " tokens are too few for windows of ",
         options_.context, " tokens and a target");
  stride_ = options_.stride > 0 ? options_.stride : options_.context;
  if (options_.windows == TextWindows::kConsecutive)
    size_ = (starts_ - 1) / stride_ + 1;
  else
    size_ = options_.samples > 0 ? options_.samples
                                 : std::max<int64_t>(1, (end_ - begin_ - 1) / options_.context);
  const auto add_field = [&](const std::string& field_name, int64_t classes) {
    Field field;
    field.name = field_name;
    field.dtype = DType::kI64;
    field.shape = {options_.context};
    field.class_count = classes;
    fields_.push_back(std::move(field));
  };
  add_field(options_.token_field, row_->vocabulary_size());
  add_field(options_.target_field, row_->vocabulary_size());
  if (!options_.end_token) return;
  if (*options_.end_token < 0 || *options_.end_token >= row_->vocabulary_size())
    fail(ErrorCode::kConfig, kind, ": end_token is ", *options_.end_token,
         ", expected an id below ", row_->vocabulary_size());
  add_field("segments", 0);
  add_field("positions", 0);
}

void WindowDataset::read(int64_t index, const ReadContext& context, Sample& out) const {
  static const uint64_t kStream = stream_of("text windows");
  int64_t start = begin_ + index * stride_;
  if (options_.windows == TextWindows::kRandom)
    start = begin_ + static_cast<int64_t>(
                         Random(context.seed, kStream, context.epoch)
                             .below(static_cast<uint64_t>(index), static_cast<uint64_t>(starts_)));
  out.resize(fields_.size());
  for (Value& value : out) value.reset(DType::kI64, fields_[0].shape);
  int64_t* const tokens = out[0].data<int64_t>();
  int64_t* const targets = out[1].data<int64_t>();
  const int64_t length = options_.context;
  row_->read(start, length, tokens);
  std::copy_n(tokens + 1, length - 1, targets);
  row_->read(start + length, 1, targets + length - 1);
  if (options_.end_token) mark_documents(tokens, out);
}

void WindowDataset::mark_documents(const int64_t* tokens, Sample& out) const {
  int64_t segment = 1, position = 0;
  for (int64_t i = 0; i < options_.context; ++i) {
    out[2].data<int64_t>()[i] = segment;
    out[3].data<int64_t>()[i] = position++;
    if (tokens[i] != *options_.end_token) continue;
    out[1].data<int64_t>()[i] = kIgnoredTarget;
    ++segment;
    position = 0;
  }
}

std::string WindowDataset::location(int64_t index, int64_t, int64_t) const {
  if (options_.windows == TextWindows::kRandom) return str(paths_[0], ": window ", index);
  return row_->location(begin_ + index * stride_);
}

std::vector<bool> WindowDataset::used_sources() const {
  constexpr int64_t kMaxRuns = int64_t{1} << 24;
  const int64_t run = (row_->size() - 1) / kMaxRuns + 1;
  std::vector<bool> used(static_cast<size_t>((row_->size() - 1) / run + 1));
  const int64_t first = (begin_ + run - 1) / run;
  const int64_t last = end_ == row_->size() ? static_cast<int64_t>(used.size()) : end_ / run;
  if (first < last) std::fill(used.begin() + first, used.begin() + last, true);
  return used;
}

std::vector<std::pair<std::string, std::string>> WindowDataset::facts() const {
  return {{"tokens", str(end_ - begin_, " of ", row_->size())}};
}

}  // namespace paddle::data
