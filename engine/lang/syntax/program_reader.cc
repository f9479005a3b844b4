// Reading of model files: sections, includes, variants and overrides, and the checks that need no
// knowledge of operations.
#include <algorithm>
#include <filesystem>
#include <set>

#include "lang/syntax/lexer.h"
#include "lang/syntax/model_schema.h"
#include "lang/syntax/parser.h"
#include "lang/syntax/program.h"
#include "lang/syntax/program_names.h"

namespace paddle::lang {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& top_keys() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    const config::Schema schema = model_schema();
    for (const config::Schema::Key& key : schema.keys()) out.push_back(key.name);
    return out;
  }();
  return names;
}

class ProgramReader {
 public:
  ProgramReader(const ProgramOptions& options) : options_(options) {}

  std::shared_ptr<const Program> read(const Node& root, const std::string& file) {
    program_ = std::make_shared<Program>();
    program_->file = file;
    program_->name = fs::path(file).stem().string();
    if (!root.is_map()) {
      throw Error(ErrorCode::kConfig,
                  str("expected a model (a map with 'inputs' and 'model'), "
                      "found ",
                      root.describe()),
                  root.location());
    }
    open_.push_back(fs::absolute(file).lexically_normal().string());
    done_.insert(open_.back());
    check_keys(root, top_keys());
    include_files(root);
    params_ = make_map(root.source);
    for (const Library& library : libraries_) add_library_params(library);
    own_params(root);
    apply_variant(root);
    apply_overrides();
    read_params();
    read_blocks(root, file);
    if (const Node* name = root.find("name")) {
      diagnostics_.guard([&] { program_->name = name->as_string(); });
    }
    read_entry(root, root, "model", program_->model);
    read_functions(root);
    collect_dims(*program_, diagnostics_);
    check_assignments(*program_, diagnostics_);
    diagnostics_.raise();
    return program_;
  }

 private:
  struct Library {
    std::string file;
    Node root;
  };

  void add(const Node& node, std::string message) {
    diagnostics_.add(ErrorCode::kConfig, std::move(message), node.location());
  }

  void check_keys(const Node& map, const std::vector<std::string>& known) {
    for (const Entry& entry : map.entries) {
      if (std::find(known.begin(), known.end(), entry.key.text) == known.end()) {
        add(entry.key,
            str("unknown key '", entry.key.text, "'", did_you_mean(entry.key.text, known)));
        misspelt_.insert({&map, nearest(entry.key.text, known)});
      }
    }
  }

  /// Notes that a section is not there, unless a key that was rejected meant it.
  void missing(const Node& map, const Node& at, const std::string& key, const std::string& name) {
    if (misspelt_.count({&map, key})) return;
    add(at,
        str("'", key, "' is missing", name == "model" ? "" : " in the function '" + name + "'"));
  }

  /// The section if it is there and a map; an error is noted if it is something else.
  const Node* section(const Node& root, const char* key) {
    const Node* node = root.find(key);
    if (!node || node->is_null()) return nullptr;
    if (node->is_map()) return node;
    add(*node, str("'", key, "' must be a map, found ", node->describe()));
    return nullptr;
  }

  // --- include ---

  void include_files(const Node& root) {
    const Node* include = root.find("include");
    if (!include || include->is_null()) return;
    if (include->is_scalar()) return include_file(*include);
    if (!include->is_sequence()) {
      return add(*include, str("'include' must be a list of files, found ", include->describe()));
    }
    for (const Node& item : include->items) include_file(item);
  }

  void include_file(const Node& item) {
    if (!item.is_scalar()) return add(item, str("expected a file, found ", item.describe()));
    const std::string path = resolve_path(item);
    // An error in a file of another kind would quote it.
    constexpr std::string_view kEndings[] = {".yaml", ".yml", ".json"};
    if (std::ranges::none_of(kEndings, [&](auto ending) { return path.ends_with(ending); }))
      return add(item,
                 str("'include' must name a .yaml, .yml or .json file, found '", item.text, "'"));
    if (std::find(open_.begin(), open_.end(), path) != open_.end()) {
      return add(item, str("'", item.text, "' includes itself"));
    }
    if (!done_.insert(path).second) return;
    if (done_.size() > 200) return add(item, "more than 200 included files");
    diagnostics_.guard([&] {
      Library library;
      // The name stays as relative as the including file's, so that messages are short.
      library.file = (fs::path(item.source->name()).parent_path() / item.text).lexically_normal();
      if (fs::path(item.text).is_absolute()) library.file = path;
      try {
        library.root = read_document(library.file, diagnostics_);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kUsage) throw;
        throw Error(ErrorCode::kConfig, str("cannot include '", item.text, "': ", error.message()),
                    item.location());
      }
      if (!library.root.is_map()) {
        throw Error(
            ErrorCode::kConfig,
            str("expected a map with 'blocks' or 'params', found ", library.root.describe()),
            library.root.location());
      }
      check_keys(library.root, top_keys());
      open_.push_back(path);
      include_files(library.root);
      open_.pop_back();
      libraries_.push_back(std::move(library));
    });
  }

  // --- params ---

  void add_library_params(const Library& library) {
    const Node* params = section(library.root, "params");
    if (!params) return;
    for (const Entry& entry : params->entries) {
      if (const Entry* other = params_.find_entry(entry.key.text)) {
        add(entry.key,
            str("the param '", entry.key.text, "' is also in ", other->key.location().text()));
        continue;
      }
      params_.entries.push_back(entry);
    }
  }

  void own_params(const Node& root) {
    const Node* params = section(root, "params");
    if (!params) return;
    for (const Entry& entry : params->entries) {
      if (Node* inherited = params_.find(entry.key.text)) {
        *inherited = entry.value;
      } else {
        params_.entries.push_back(entry);
      }
    }
  }

  std::vector<std::string> param_names() const {
    std::vector<std::string> names;
    for (const Entry& entry : params_.entries) names.push_back(entry.key.text);
    return names;
  }

  void apply_variant(const Node& root) {
    const Node* variants = section(root, "variants");
    std::vector<std::string> names;
    if (variants) {
      for (const Entry& variant : variants->entries) {
        names.push_back(variant.key.text);
        if (variant.value.is_null()) continue;
        if (!variant.value.is_map()) {
          add(variant.value,
              str("a variant must be a map of params, found ", variant.value.describe()));
          continue;
        }
        check_variant(params_, variant.value, "param");
      }
    }
    program_->variants = names;
    if (options_.variant.empty()) return;
    const Node* chosen = variants ? variants->find(options_.variant) : nullptr;
    if (!chosen) {
      fail(ErrorCode::kUsage, program_->file, ": unknown variant '", options_.variant, "'",
           did_you_mean(options_.variant, names),
           names.empty() ? ": the model has none" : ": it has " + join(names, ", "));
    }
    if (chosen->is_map() && diagnostics_.empty()) merge(params_, *chosen);
  }

  /// Every key of a variant must be there already, at every depth.
  void check_variant(const Node& base, const Node& over, std::string_view what) {
    std::vector<std::string> names;
    for (const Entry& entry : base.entries) names.push_back(entry.key.text);
    for (const Entry& entry : over.entries) {
      const Node* existing = base.find(entry.key.text);
      if (!existing) {
        add(entry.key,
            str("unknown ", what, " '", entry.key.text, "'", did_you_mean(entry.key.text, names)));
      } else if (existing->is_map() && entry.value.is_map()) {
        check_variant(*existing, entry.value, "key");
      }
    }
  }

  /// Params of the models that come with the programs had other names, which configs may state.
  void use_current_name(Override& change) const {
    constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
        {"words", "vocab_size"},
        {"inner", "intermediate_size"},
        {"head", "head_dim"},
        {"chosen", "experts_per_token"},
        {"normed_shares", "norm_topk_prob"},
        {"expert_inner", "expert_intermediate_size"},
        {"shared_inner", "shared_intermediate_size"}};
    if (!params_.is_map() || params_.find(change.path[1])) return;
    for (const auto& [before, now] : kRenamed)
      if (change.path[1] == before && params_.find(std::string(now))) change.path[1] = now;
  }

  void apply_overrides() {
    for (Override change : options_.overrides) {
      if (change.path.size() < 2 || change.path[0] != "params") {
        fail(ErrorCode::kUsage, "'", change.text, "': expected params.NAME=value");
      }
      use_current_name(change);
      const Node* node = &params_;
      for (size_t i = 1; i < change.path.size() && node && node->is_map(); ++i) {
        std::vector<std::string> names;
        for (const Entry& entry : node->entries) names.push_back(entry.key.text);
        node = node->find(change.path[i]);
        if (!node) {
          const bool typed = change.value.source_kind() == SourceKind::kCommandLine;
          throw Error(typed ? ErrorCode::kUsage : ErrorCode::kConfig,
                      str("'", change.text, "': unknown param '", change.path[i], "'",
                          did_you_mean(change.path[i], names)),
                      typed ? SourceLocation{} : change.value.location());
        }
      }
      change.path.erase(change.path.begin());
      apply_override(params_, change);
    }
  }

  void read_params() {
    for (const Entry& entry : params_.entries) {
      if (!is_identifier(entry.key.text)) {
        add(entry.key, str("'", entry.key.text, "' cannot be a param's name"));
        continue;
      }
      program_->params.push_back({name_of(entry.key), read_yaml_value(entry.value, nullptr)});
    }
  }

  // --- blocks ---

  void read_blocks(const Node& root, const std::string& file) {
    for (const Library& library : libraries_) {
      if (const Node* blocks = section(library.root, "blocks")) add_blocks(*blocks, library.file);
    }
    if (const Node* blocks = section(root, "blocks")) add_blocks(*blocks, file);
    for (const auto& block : program_->blocks) check_unique(*block, file);
  }

  void add_blocks(const Node& blocks, const std::string& file) {
    for (const Entry& entry : blocks.entries) {
      auto block = std::make_unique<Block>();
      block->file = file;
      const bool ok = diagnostics_.guard([&] { block->signature = parse_signature(entry.key); });
      if (ok) check_block_name(block->signature, file);
      block->code = read_code(entry.value, diagnostics_);
      if (ok) program_->blocks.push_back(std::move(block));
    }
  }

  void check_block_name(const Signature& signature, const std::string& file) {
    if (is_builtin(signature.name)) {
      diagnostics_.add(ErrorCode::kConfig,
                       str("a block cannot be called '", signature.name, "': it is a built-in"),
                       signature.where.location());
    }
    for (const auto& other : program_->blocks) {
      if (other->signature.name == signature.name && other->file == file) {
        diagnostics_.add(ErrorCode::kConfig,
                         str("the block '", signature.name, "' is declared twice, first in line ",
                             other->signature.where.line),
                         signature.where.location());
      }
    }
  }

  /// Two included files with a block of one name, which the including file does not declare.
  void check_unique(const Block& block, const std::string& main_file) {
    if (block.file == main_file) return;
    for (const auto& other : program_->blocks) {
      if (other.get() == &block) return;
      const bool clash = other->signature.name == block.signature.name &&
                         other->file != block.file && other->file != main_file;
      const Block* meant = program_->find_block(block.signature.name, main_file);
      if (clash && meant->file != main_file) {
        diagnostics_.add(ErrorCode::kConfig,
                         str("the block '", block.signature.name, "' is also in ",
                             other->signature.where.location().text()),
                         block.signature.where.location());
        return;
      }
    }
  }

  // --- entries ---

  void read_entry(const Node& node, const Node& owner, const std::string& name, EntryPoint& out) {
    out.name = name;
    const Node* code = node.find("model");
    out.where.file = owner.source ? owner.source->shared_name() : nullptr;
    if (code) {
      const SourceLocation place = code->location();
      out.where.line = place.line;
      out.where.column = place.column;
      out.code = read_code(*code, diagnostics_);
    } else {
      missing(node, owner, "model", name);
    }
    if (const Node* inputs = node.find("inputs")) {
      read_inputs(*inputs, out);
    } else {
      missing(node, owner, "inputs", name);
    }
    if (const Node* outputs = node.find("outputs")) read_outputs(*outputs, out);
  }

  void read_inputs(const Node& inputs, EntryPoint& out) {
    if (inputs.is_null()) return;
    if (!inputs.is_map()) {
      return add(inputs, str("'inputs' must be a map of 'name: float32[batch, 3]', found ",
                             inputs.describe()));
    }
    for (const Entry& entry : inputs.entries) {
      diagnostics_.guard([&] {
        Input input;
        input.name = name_of(entry.key);
        if (!is_identifier(input.name.text) || input.name.text == "_") {
          throw Error(ErrorCode::kConfig, str("'", input.name.text, "' cannot be an input's name"),
                      entry.key.location());
        }
        if (program_->find_param(input.name.text)) {
          throw Error(ErrorCode::kConfig, str("'", input.name.text, "' is a param already"),
                      entry.key.location());
        }
        InputType type = parse_input_type(entry.value);
        const auto dtype = parse_dtype(type.dtype);
        if (!dtype) {
          throw Error(
              ErrorCode::kConfig,
              str("unknown type '", type.dtype, "'", did_you_mean(type.dtype, dtype_names())),
              type.where.location());
        }
        input.dtype = *dtype;
        input.shape = std::move(type.shape);
        out.inputs.push_back(std::move(input));
      });
    }
  }

  void read_outputs(const Node& outputs, EntryPoint& out) {
    const auto take = [&](const Node& item) {
      if (!item.is_scalar() || !is_identifier(item.text)) {
        return add(item, str("expected an output's name, found ", item.describe()));
      }
      for (const Name& other : out.outputs) {
        if (other.text == item.text)
          return add(item, str("the output '", item.text, "' is named twice"));
      }
      out.outputs.push_back(name_of(item));
    };
    if (outputs.is_scalar()) return take(outputs);
    if (!outputs.is_sequence() || outputs.items.empty()) {
      return add(outputs, str("'outputs' must be a list of names, found ",
                              outputs.is_sequence() ? "an empty list" : outputs.describe()));
    }
    for (const Node& item : outputs.items) take(item);
  }

  void read_functions(const Node& root) {
    const Node* functions = section(root, "functions");
    if (!functions) return;
    for (const Entry& entry : functions->entries) {
      if (!is_identifier(entry.key.text) || entry.key.text == "model") {
        add(entry.key, str("'", entry.key.text, "' cannot be a function's name"));
        continue;
      }
      if (!entry.value.is_map()) {
        add(entry.value, str("a function must be a map with 'inputs' and 'model', found ",
                             entry.value.describe()));
        continue;
      }
      check_keys(entry.value, {"inputs", "model", "outputs"});
      EntryPoint function;
      read_entry(entry.value, entry.key, entry.key.text, function);
      program_->functions.push_back(std::move(function));
    }
  }

  const ProgramOptions& options_;
  std::shared_ptr<Program> program_;
  Diagnostics diagnostics_;
  Node params_;
  std::vector<Library> libraries_;
  std::vector<std::string> open_;
  std::set<std::string> done_;
  std::set<std::pair<const Node*, std::string>> misspelt_;

 public:
  Diagnostics& diagnostics() { return diagnostics_; }
};

}  // namespace

std::shared_ptr<const Program> read_program(const std::string& path,
                                            const ProgramOptions& options) {
  ProgramReader reader(options);
  const Node root = read_document(path, reader.diagnostics());
  return reader.read(root, path);
}

std::shared_ptr<const Program> read_program(const Node& node, const ProgramOptions& options) {
  return ProgramReader(options).read(node, node.source ? node.source->name() : std::string());
}

}  // namespace paddle::lang
