#pragma once
// The interface of rules for operations of PaddlePaddle's programs: the operation at hand,
// read by the names of its slots (.pdmodel) or their positions (PIR), and the graph under
// construction.

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/onnx/attributes.h"
#include "formats/onnx/model.h"
#include "formats/paddle_params.h"
#include "formats/paddle_program.h"

namespace paddle::onnx {

using ImportNames = std::vector<std::string>;
using ImportAttributes = std::vector<formats::onnx::Attribute>;

class ProgramImporter {
 public:
  ProgramImporter(formats::PaddleProgram program, const std::string& path, int64_t opset);

  /// `for_file`: outputs have their declared shapes, which a file needs. Programs of older versions
  /// declare [1] where a value has no axes, so that they are left out otherwise.
  formats::onnx::Model run(bool for_file);

  // --- the operation at hand ---

  /// An operand: the name of the slot in a .pdmodel file, the position in PIR. "" if it is absent.
  std::string in(const char* slot, size_t position);
  bool has(const char* slot, size_t position) { return !in(slot, position).empty(); }
  /// An operand that is a list.
  ImportNames in_list(const char* slot, size_t position);
  /// The declared type of an operand; its shape has -1 where a size is not known.
  const formats::PaddleVariable& type(const char* slot, size_t position) const;
  int64_t rank(const char* slot, size_t position) const;
  DType dtype(const char* slot, size_t position) const;
  /// The declared type of a result.
  const formats::PaddleVariable& result_type(const char* slot, size_t position) const;

  /// Attributes, by the first of the names that is there.
  using Keys = std::initializer_list<const char*>;
  std::vector<int64_t> ints(Keys keys) const;
  int64_t integer(Keys keys, int64_t fallback) const;
  double real(Keys keys, double fallback) const;
  bool flag(Keys keys, bool fallback) const { return integer(keys, fallback ? 1 : 0) != 0; }
  std::string text(Keys keys, const std::string& fallback) const;
  std::optional<DType> dtype_attr(Keys keys) const;

  /// Integers that are an operand (a value, or several scalars) or an attribute; nullopt if they
  /// are only known when the program runs.
  std::optional<std::vector<int64_t>> known_ints(const char* slot, size_t position, Keys keys);
  /// The same as a value int64[n].
  std::string int_values(const char* slot, const char* list_slot, size_t position, Keys keys);
  /// The value of an operand that is a parameter or a constant; nullopt if it is neither.
  std::optional<Array> known_value(const char* slot, size_t position);
  /// Whether every operation that reads the result is one of this type.
  bool only_read_by(const char* slot, size_t position, const std::string& type) const;
  /// An attribute with one or several numbers in this type; integers keep all their bits. Empty if
  /// it is absent.
  std::optional<Array> numbers(Keys keys, DType dtype) const;
  /// A number that is an operand or an attribute; rejected if it is not known.
  double known_number(const char* slot, size_t position, Keys keys, double fallback);

  /// Whether a node of this type made a value of the graph.
  bool is_made_by(const std::string& name, const std::string& type) const;

  [[noreturn]] void reject(const std::string& why) const;

  // --- the graph ---

  std::string add(const std::string& type, ImportNames inputs, ImportAttributes attributes = {});
  ImportNames add_several(const std::string& type, ImportNames inputs, size_t outputs,
                          ImportAttributes attributes = {});
  std::string constant(const Array& array);
  std::string constant_ints(const std::vector<int64_t>& values);
  /// A 0-D constant.
  std::string scalar(double value, DType dtype);
  /// A 0-D constant of an attribute with one number.
  std::string scalar(Keys keys, double fallback, DType dtype);
  std::string cast(const std::string& name, DType to);
  /// The value as 0-D.
  std::string without_axes(const std::string& name);
  std::string transposed(const std::string& name, int64_t rank);  ///< the last two axes
  /// Says what a result is.
  void result(const char* slot, size_t position, const std::string& name);
  void result_list(const char* slot, size_t position, const ImportNames& names);
  size_t result_count(const char* slot) const;

  /// The opset that nodes are written for.
  int64_t opset() const { return model_.opsets.at(""); }
  /// Whether nodes are those of a file, which has ONNX's attributes only.
  bool for_file() const { return for_file_; }
  bool is_pir() const { return program_.is_pir; }
  const formats::PaddleOperation& operation() const { return *operation_; }

 private:
  using Slots = formats::PaddleOperation::Slots;
  const ImportNames* slot_of(const Slots& slots, const char* slot, size_t position) const;
  const formats::PaddleAttribute* attribute(Keys keys) const;
  const formats::PaddleVariable& variable(const std::string& name) const;
  std::string value(const std::string& name);
  std::string fresh(const std::string& hint);
  void add_parameters();
  void add_parameter(const std::string& name, const formats::PaddleParams& file, size_t index);
  void add_inputs();
  void add_outputs(bool with_shapes);
  void import_operations();

  formats::PaddleProgram program_;
  std::string path_;
  formats::onnx::Model model_;
  const formats::PaddleOperation* operation_ = nullptr;
  bool for_file_ = false;
  std::map<std::string, std::string> names_;  ///< of values in the graph, by theirs
  std::map<std::string, ImportNames> lists_;  ///< the values of a list, by its name
  std::map<std::string, Array> constants_;    ///< and parameters, by name in the graph
  std::set<std::string> used_;
};

using formats::onnx::float_attribute;
using formats::onnx::int_attribute;
using formats::onnx::ints_attribute;
using formats::onnx::string_attribute;

using ImportRule = std::function<void(ProgramImporter&)>;
struct ImportRuleEntry {
  /// The operation's names in .pdmodel files and in PIR.
  std::vector<const char*> names;
  ImportRule rule;
};
std::vector<ImportRuleEntry> paddle_math_rules();
std::vector<ImportRuleEntry> paddle_shape_rules();
std::vector<ImportRuleEntry> paddle_network_rules();

}  // namespace paddle::onnx
