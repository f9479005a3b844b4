#pragma once
// Imports a program: parameters become initializers, operations nodes by the rules of the table,
// and blocks of control flow graphs. Everything that a rule does not know is collected, so that one
// error names all of it with its place in the program.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/onnx/model.h"
#include "formats/paddle_params.h"
#include "formats/paddle_program.h"
#include "paddle_program/rule_table.h"

namespace paddle::paddle_program {

class ProgramImporter {
 public:
  ProgramImporter(formats::PaddleProgram program, const std::string& path);
  formats::onnx::Model run();

 private:
  using Names = std::vector<std::string>;
  using Graph = formats::onnx::Graph;
  using Node = formats::onnx::Node;
  using Operation = formats::PaddleOperation;
  using Slots = Operation::Slots;

  /// A conditional_block whose results have no value before it: select_input chooses them.
  struct Branch {
    std::shared_ptr<Graph> graph;             ///< its outputs are not set
    std::map<std::string, std::string> made;  ///< values in the graph by the program's names
  };
  /// Names visible to the operations of a block.
  struct Scope {
    Scope* outer = nullptr;
    Graph* graph = nullptr;
    std::map<std::string, std::string> names;  ///< current values by the program's names
    std::map<std::string, Names> lists;        ///< the program's names of a list's elements
    std::map<std::string, std::shared_ptr<Branch>> chosen;  ///< that one branch computed
    const std::string* find(const std::string& name) const;
    const Names* find_list(const std::string& name) const;
    std::shared_ptr<Branch> find_chosen(const std::string& name) const;
  };

  void add_inputs();
  void add_parameters();
  void add_named_parameters(const Names& wanted, const std::string& path);
  void add_parameter(const std::string& name, const std::string& file, Array stored);
  void add_outputs();

  void add_arrays(const formats::PaddleBlock& block);
  void import_block(size_t block, Scope& scope);
  void import_operation(const Operation& operation);
  void combine(const Operation& operation);
  void import_by_rule(const Operation& operation, const ProgramRule& rule, size_t index);
  void import_conditional(const Operation& operation);
  void import_pir_if(const Operation& operation);
  void import_select(const Operation& operation);
  void import_while(const Operation& operation);

  // The operation at hand.
  const Names* slot(const Slots& slots, const std::string& name, size_t position) const;
  /// The values of a slot's names, lists taken apart.
  Names values_of(const Names& names);
  const std::string& value(const std::string& name);
  Names inputs_of(const Operation& operation, const ProgramArgument& argument, size_t position,
                  bool& is_known);
  std::optional<formats::PaddleAttribute> take_attribute(const Operation& operation,
                                                         const ProgramArgument& argument);
  std::optional<formats::PaddleAttribute> declared_type(const Operation& operation) const;
  void check_known(const Operation& operation, const ProgramRule& rule);
  void note(const std::string& why);  ///< the operation at hand cannot be imported
  bool is_read_by(const std::string& name, const std::string& type) const;

  // Blocks.
  /// Names of values that the block assigns, inner blocks included.
  std::set<std::string> assigned_in(size_t block, int depth = 0) const;
  Names assigned_outside(size_t block) const;
  const formats::PaddleBlock& block_of(const Operation& operation, size_t i) const;
  /// An empty graph within the block at hand; `scope` has the names of its block.
  std::shared_ptr<Graph> new_graph(Scope& scope, const std::string& name);
  static Names yielded(const formats::PaddleBlock& block);
  void add_control(const Operation& operation, const char* type, Names inputs,
                   std::vector<int64_t> operands,
                   const std::vector<std::pair<std::string, std::shared_ptr<Graph>>>& graphs,
                   const Names& outputs);

  void assign(const std::string& name, const std::string& value);
  std::string fresh(const std::string& hint);
  const formats::PaddleVariable& variable(const std::string& name) const;
  std::string place() const;

  formats::PaddleProgram program_;
  std::string path_;
  formats::onnx::Model model_;
  Scope* scope_ = nullptr;
  const Operation* operation_ = nullptr;
  size_t block_ = 0, position_ = 0;
  int depth_ = 0;
  std::set<std::string> used_;
  std::map<std::string, std::set<std::string>>
      readers_;  ///< types of operations by names they read
  struct Problem {
    std::string what, place;  ///< the place of the first operation
    size_t count = 0;
  };
  std::vector<Problem> problems_;
  size_t problem_count_ = 0;
};

}  // namespace paddle::paddle_program
