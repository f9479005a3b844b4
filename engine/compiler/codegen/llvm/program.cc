#include "compiler/codegen/llvm/program.h"

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <stdexcept>

namespace paddle::codegen {
namespace {

constexpr std::array<std::string_view, 13> kTypes = {
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"};

class Line {
 public:
  explicit Line(const std::string& text) : words_(text) {}

  std::string word() {
    std::string text;
    if (!(words_ >> text)) throw std::runtime_error("a line of the program is cut short");
    return text;
  }
  int number(size_t below) {
    const std::string text = word();
    const int value = std::stoi(text);
    if (value < 0 || static_cast<size_t>(value) >= below)
      throw std::runtime_error("no such node: " + text);
    return value;
  }
  /// Parses one of these words and returns its index.
  size_t one_of(std::span<const std::string_view> words) {
    const std::string text = word();
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end()) throw std::runtime_error("not known here: " + text);
    return static_cast<size_t>(found - words.begin());
  }
  Type type() { return static_cast<Type>(one_of(kTypes)); }

 private:
  std::istringstream words_;
};

constexpr std::array<std::string_view, 4> kFolds = {"sum", "prod", "max", "min"};
constexpr std::array<std::string_view, 2> kForms = {"elements", "lanes"};

constexpr size_t kMaxOperands = 8, kMaxParameters = 16, kMaxUnroll = 8;

Level level_of(const std::string& access) {
  if (access == "scalar") return Level::kScalar;
  return access == "row" ? Level::kRow : Level::kVector;
}

}  // namespace

Program parse_program(std::string_view text) {
  Program program;
  std::istringstream lines{std::string(text)};
  std::string content;
  while (std::getline(lines, content)) {
    Line line(content);
    const std::string word = line.word();
    const size_t made = program.nodes.size();
    if (word == "store") {
      const int node = line.number(made);
      program.stores.push_back({node, line.type()});
      continue;
    }
    if (word == "fold") {
      const auto kind = static_cast<Fold::Kind>(line.one_of(kFolds));
      const int node = line.number(made);
      if (!is_float(program.nodes[static_cast<size_t>(node)].type))
        throw std::runtime_error("fold of a value that is not a float");
      program.folds.push_back({kind, node, line.one_of(kForms) == 1});
      continue;
    }
    if (word == "unroll") {
      program.unroll = line.number(kMaxUnroll + 1);
      if (program.unroll == 0 || (program.unroll & (program.unroll - 1)) != 0)
        throw std::runtime_error("unroll is not a power of two");
      continue;
    }
    Node node;
    if (word == "read") {
      node.memory = line.type();
      node.type = line.type();
      node.level = level_of(line.word());
      node.pointer = program.reads++;
    } else if (word == "convert") {
      node.kind = Node::Kind::kConvert;
      node.type = line.type();
      node.inputs = {line.number(made)};
    } else if (word == "apply") {
      node.kind = Node::Kind::kApply;
      node.loop = line.word();
      node.type = line.type();
      node.inputs.resize(static_cast<size_t>(line.number(kMaxOperands)));
      for (int& input : node.inputs) input = line.number(made);
      node.parameters.resize(static_cast<size_t>(line.number(kMaxParameters)));
      for (double& parameter : node.parameters) parameter = std::stod(line.word());
    } else {
      throw std::runtime_error("no such step: " + word);
    }
    if (!node.inputs.empty()) {
      node.level = Level::kScalar;
      for (const int input : node.inputs)
        node.level = std::max(node.level, program.nodes[static_cast<size_t>(input)].level);
    }
    program.nodes.push_back(std::move(node));
  }
  if (program.stores.empty() && program.folds.empty())
    throw std::runtime_error("a program without results");
  return program;
}

}  // namespace paddle::codegen
