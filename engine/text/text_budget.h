#pragma once
// The memory and the work that making a text may take. Templates and the steps of tokenizers, which
// do what a file says, charge a size to their budget before they take the memory, so that a few
// bytes of a file cannot ask for gigabytes.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace paddle {

class TextBudget {
 public:
  /// `work` names what is limited in errors: "rendering". `steps` counts pieces of work that take
  /// time, but no memory.
  explicit TextBudget(std::string work, uint64_t bytes, uint64_t steps = UINT64_MAX)
      : work_(std::move(work)), bytes_(bytes), steps_(steps) {}
  TextBudget(const TextBudget&) = delete;
  TextBudget& operator=(const TextBudget&) = delete;

  /// Counts bytes that are about to be taken; kData if they are too many.
  void charge(uint64_t bytes) {
    if (bytes > bytes_ - charged_) reject_bytes();
    charged_ += bytes;
  }
  void charge(uint64_t count, uint64_t bytes_each) {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, bytes_each, &bytes)) reject_bytes();
    charge(bytes);
  }
  /// Counts steps; kData if they are too many.
  void step(uint64_t count = 1) {
    if (count > steps_ - stepped_) reject_steps();
    stepped_ += count;
  }

 private:
  [[noreturn]] void reject_bytes() const {
    fail(ErrorCode::kData, work_, " makes more than ", human_bytes(bytes_), " of values");
  }
  [[noreturn]] void reject_steps() const {
    fail(ErrorCode::kData, work_, " takes more than ", steps_, " steps");
  }
  std::string work_;
  uint64_t bytes_, steps_;
  uint64_t charged_ = 0, stepped_ = 0;
};

/// A text that grows, charged to a budget before it does.
class BudgetedText {
 public:
  explicit BudgetedText(TextBudget& budget) : budget_(budget) {}
  BudgetedText& operator+=(std::string_view more) {
    budget_.charge(more.size());
    text_ += more;
    return *this;
  }
  BudgetedText& operator+=(char c) {
    budget_.charge(1);
    text_ += c;
    return *this;
  }
  void repeat(std::string_view more, uint64_t count) {
    budget_.charge(count, more.size());
    text_.reserve(text_.size() + count * more.size());
    for (uint64_t i = 0; i < count && !more.empty(); ++i) text_ += more;
  }
  bool empty() const { return text_.empty(); }
  size_t size() const { return text_.size(); }
  TextBudget& budget() const { return budget_; }
  std::string take() { return std::move(text_); }

 private:
  TextBudget& budget_;
  std::string text_;
};

}  // namespace paddle
