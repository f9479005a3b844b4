// Attributes that are words: every operation rejects a word that it does not know.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "inspect/numeric.h"
#include "inspect/op_call.h"
#include "inspect/run_op.h"
#include "ops/generated/nn.h"
#include "runtime/execute.h"

namespace paddle::inspect {
namespace {

/// Attributes of any text: names, messages, equations.
bool is_free_text(const std::string& op, const std::string& attr) {
  static const std::set<std::string> attributes = {
      "rng_name",       // names a stream of PaddlePaddle's random numbers
      "key",            // names an index of sparse convolutions
      "print.message",  // of a person
      "print.place",   "assert_true.message", "assert_true.place",     "read_file.filename",
      "py_func.func",  "py_func.out",         "py_func.backward_func",
  };
  return attributes.count(attr) > 0 || attributes.count(op + "." + attr) > 0;
}

/// The error of a call, "" if it is accepted.
std::string error_of(const Op& op, const std::vector<std::string>& words) {
  try {
    run_named(parse_call(op, words), Mode::kEager, false);
    return "";
  } catch (const Error& e) {
    return e.message().empty() ? "error" : e.message();
  }
}

/// The words of a sample without those of an attribute.
std::vector<std::string> without(const std::string& sample, const std::string& attr) {
  std::vector<std::string> out;
  for (const std::string& word : split(sample, ' '))
    if (!word.empty() && !word.starts_with(attr + "=")) out.push_back(word);
  return out;
}

TEST(Words, UnknownOnesAreErrorsOfEveryOperation) {
  runtime::register_backends();
  int checked = 0;
  for (const Op* op : all_ops()) {
    const std::string name(op->name());
    for (const AttrDef& attr : op->attrs()) {
      if (attr.type != AttrType::kString && attr.type != AttrType::kWord &&
          attr.type != AttrType::kStrings)
        continue;
      if (is_free_text(name, attr.name)) continue;
      const std::string word =
          attr.type == AttrType::kStrings ? "=[no_such_word]" : "=no_such_word";
      for (const std::string& sample : samples_of(*op)) {
        // A sample that is accepted, so that nothing but the word is wrong.
        if (!error_of(*op, split(sample, ' ')).empty()) continue;
        std::vector<std::string> words = without(sample, attr.name);
        words.push_back(attr.name + word);
        EXPECT_NE(error_of(*op, words), "") << name << " " << join(words, " ");
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 300);
}

TEST(Words, CallsFromCppAreCheckedToo) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const Tensor x(Array::zeros(DType::kF32, {1, 2, 4, 4}));
  const auto error = [&](const std::string& format) -> std::string {
    try {
      ops::max_pool2d(x, AttrValue(2), AttrValue(), AttrValue(0), false, false, format);
      return "";
    } catch (const Error& e) {
      return e.message();
    }
  };
  EXPECT_EQ(error("NHWC"), "");
  EXPECT_EQ(
      error("NHCW"),
      "max_pool2d: data_format: expected one of NCHW, NHWC, found 'NHCW' (did you mean 'NCHW'?)");
}

}  // namespace
}  // namespace paddle::inspect
