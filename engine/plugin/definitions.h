#pragma once
// The operations of one plug-in as definitions for the registry, made of the entries of its schema.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "op_schema/entry.h"
#include "ops/core/op.h"
#include "partition/factor_text.h"
#include "plugin/rules_adapter.h"
#include "plugin/text_code.h"
#include "plugin/text_rules.h"

namespace paddle::plugin {

/// How an operation is split over ranks (partition/factor_text.h).
struct ShardingRule {
  std::string operation;
  partition::RuleFn rule;
};

/// Owns what the definitions point to. It must outlive the registry, so loaders never free it.
class Definitions {
 public:
  explicit Definitions(const Provider& provider) : provider_(provider) {}

  /// Adds the entries of a schema: the map of `text`, as if it were the content of `file`, at the
  /// key `section` ("" for the whole). `rules`: those in C, by the name of the entry. kConfig with
  /// place for an entry that does not fit, or whose operation exists.
  void add_schema(const std::string& text, const std::string& file, const std::string& section,
                  const std::map<std::string, NativeRules>& rules = {});

  const std::vector<OpDef>& ops() const { return ops_; }
  const std::vector<Alias>& aliases() const { return aliases_; }
  std::vector<std::string> names() const;
  /// kConfig if an operation has neither a body nor a kernel for the CPU among these operations.
  void require_kernels(const std::vector<std::string>& with_kernels) const;
  /// The rules by which their calls are split over ranks.
  const std::vector<ShardingRule>& sharding() const { return sharding_; }
  /// kConfig with the place of a name that a body or a gradient does not know, or of an
  /// unknown operation. `others`: further codes of the plug-in.
  void check_codes(const std::vector<StatedCode>& others = {}) const;

 private:
  const char* keep(std::string text);
  void add(const op_schema::Entry& entry, TextRules rules, const std::string& section);
  void note_codes(const op_schema::Entry& entry, const config::Node& node);
  void add_native_rules(const op_schema::Entry& entry, const TextRules& rules, OpDef& def);

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
  std::deque<NativeRules> native_;
  std::vector<OpDef> ops_;
  std::vector<Alias> aliases_;
  std::vector<ShardingRule> sharding_;
  std::vector<StatedCode> codes_;
  std::vector<std::pair<std::string, SourceLocation>> needs_kernel_;
  std::map<std::string, SourceLocation> places_;
};

}  // namespace paddle::plugin
