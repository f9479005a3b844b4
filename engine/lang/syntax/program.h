#pragma once
// A model file, read and checked as far as its text allows: parameters, inputs, blocks,
// the model and further entry functions, with bodies and chains as syntax trees. The evaluator
// runs a Program; nothing here knows operations.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lang/config_types.h"
#include "lang/syntax/syntax.h"
#include "tensor/dtype.h"

namespace paddle::lang {

class ExternalEntry;

struct YamlEntry;

/// A YAML value in a chain item or in `params`. Whether a scalar is text or an expression is
/// decided by the declared type of what takes it, so both readings are kept.
struct YamlValue {
  Node node;
  ExprPtr expression;                      ///< of a scalar that parses as one
  std::optional<Error> not_an_expression;  ///< of a scalar that does not
  std::vector<YamlValue> items;            ///< of a list
  std::vector<YamlEntry> entries;          ///< of a map
};
struct YamlEntry {
  std::string key;
  YamlValue value;
};

/// A name in the text.
struct Name {
  std::string text;
  SourcePosition where;
};

struct ChainArgument {
  Name name;  ///< empty for a bare value, the first parameter
  YamlValue value;
};

/// One item of a chain: an operation or block, applied to the current value or to `from`.
struct ChainItem {
  SourcePosition where;
  Name callee;  ///< empty if the item only selects a value (`from:`)
  std::vector<ChainArgument> arguments;
  std::vector<Name> from;  ///< empty: the current value, which `_` names too
  std::vector<Name> as;
  int site = -1;  ///< index in Code::sites
};

/// A body or a chain.
struct Code {
  bool is_chain = false;
  std::vector<Stmt> statements;
  std::vector<ChainItem> chain;
  std::vector<CallSite> sites;  ///< every call in it, by place in the text
  SourcePosition where;
};

struct Block {
  Signature signature;
  Code code;
  std::string file;  ///< a block that is named like an operation wins in its file only
};

struct Input {
  Name name;
  DType dtype = DType::kF32;
  std::vector<ExprPtr> shape;
};

/// `model:` or one of `functions:`.
struct EntryPoint {
  std::string name;  ///< "model" for the main one
  SourcePosition where;
  std::vector<Input> inputs;
  Code code;
  std::shared_ptr<const ExternalEntry> external;  ///< in place of code
  std::vector<Name> outputs;                      ///< empty: one value called `output`
};

struct Param {
  Name name;
  YamlValue value;
};

struct Program {
  std::string name;
  std::string file;
  std::vector<Param> params;
  std::vector<std::string> variants;
  std::vector<std::unique_ptr<Block>> blocks;
  EntryPoint model;
  std::vector<EntryPoint> functions;
  std::vector<std::string> dims;  ///< names in shapes that are not params, in order of appearance

  const Param* find_param(std::string_view name) const;
  bool is_dim(std::string_view name) const;
  /// The block that a call in `file` means: that file's own first, then any other. Null if none.
  const Block* find_block(std::string_view name, std::string_view file) const;
  /// `model` or one of the functions, or null.
  const EntryPoint* find_entry(std::string_view name) const;
};

struct ProgramOptions {
  std::string variant;              ///< a name in `variants`, or empty
  std::vector<Override> overrides;  ///< each path starts with `params`
};

/// "resnet.yaml:l" taken apart into the file and the variant ("" if there is none).
std::pair<std::string, std::string> split_variant(std::string_view argument);

/// Reads a model file. All errors of the text are thrown as one kConfig; an unknown variant or
/// override, and a file that is not there, are kUsage.
std::shared_ptr<const Program> read_program(const std::string& path,
                                            const ProgramOptions& options = {});
/// The same for a map inside another document (`model:` of a config).
std::shared_ptr<const Program> read_program(const Node& node, const ProgramOptions& options = {});

/// A body, a chain or (if `allow_expression`) anything that stands by itself, outside a model file
/// (`loss:`, `step:` of a config).
Code read_code(const Node& node, Diagnostics& diagnostics);
YamlValue read_yaml_value(const Node& node, std::vector<CallSite>* sites);
/// The place of a scalar's first character, and the scalar as a name.
SourcePosition where_of(const Node& node);
Name name_of(const Node& node);

/// Built-in functions of the language; blocks may not take their names.
bool is_builtin(std::string_view name);
std::span<const std::string_view> builtin_names();

/// Names that are defined outside of the program.
struct KnownNames {
  std::function<bool(const std::string&)> is_operation;
  std::function<std::vector<std::string>()> operations;  ///< for suggestions
};
/// Collects calls of unknown functions and reads of unknown names, in all bodies and chains.
void check_names(const Program& program, const KnownNames& known, Diagnostics& diagnostics);

}  // namespace paddle::lang
