#pragma once
// The operations of one plug-in as definitions for the registry, made of the entries of its schema.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "op_schema/entry.h"
#include "ops/core/op.h"
#include "plugin/text_rules.h"

namespace paddle::plugin {

/// Owns what the definitions point to. It must outlive the registry, so loaders never free it.
class Definitions {
 public:
  explicit Definitions(const Provider& provider) : provider_(provider) {}

  /// Adds the entries of a schema: the map of `text`, as if it were the content of `file`, at the
  /// key `section` ("" for the whole). kConfig with place for an entry that does not fit, or whose
  /// operation exists.
  void add_schema(const std::string& text, const std::string& file, const std::string& section);

  const std::vector<OpDef>& ops() const { return ops_; }
  const std::vector<Alias>& aliases() const { return aliases_; }
  std::vector<std::string> names() const;

 private:
  const char* keep(std::string text);
  void add(const op_schema::Entry& entry, TextRules rules);

  /// The tables that one definition points to.
  struct Parts {
    std::vector<OperandDef> operands;
    std::vector<AttrDef> attrs;
    std::vector<ResultDef> results;
    std::vector<ParamDef> params;
    std::vector<WeightDef> weights;
    std::vector<DTypeSet> dtypes;
    TextRules rules;
  };
  const Provider& provider_;
  std::deque<std::string> texts_;
  std::deque<Parts> parts_;
  std::vector<OpDef> ops_;
  std::vector<Alias> aliases_;
  std::map<std::string, SourceLocation> places_;
};

}  // namespace paddle::plugin
