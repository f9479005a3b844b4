// Plug-ins with code: shared objects.

#include <dlfcn.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>

#include "config/kind_keys.h"
#include "ops/core/backend.h"
#include "paddle/plugin/plugin.h"
#include "plugin/added_kinds.h"
#include "plugin/descriptors.h"
#include "plugin/elf.h"
#include "plugin/frame.h"
#include "plugin/host.h"
#include "plugin/option_struct.h"
#include "plugin/process_state.h"
#include "tensor/device_functions.h"

namespace paddle::plugin {
namespace {

constexpr const char* kEntry = "paddle_plugin_main";

DTypeSet dtypes_of(const Descriptors& d, const char* words, const std::string& operation) {
  if (is_empty(words)) return ~DTypeSet{0};
  DTypeSet out = 0;
  for (const std::string& word : split(words, '|')) {
    const DTypeSet one = dtype_set_of(trim(word));
    if (one == 0) d.reject(str("kernel of ", operation, ": dtypes: unknown dtype '", word, "'"));
    out |= one;
  }
  return out;
}

/// Checks the tables of devices.
void read_devices(const Descriptors& d, const paddle_plugin& given, Parts& parts) {
  constexpr uint32_t kMaxDevices = 8;
  if (given.device_count > kMaxDevices) d.reject(str("more than ", kMaxDevices, " devices"));
  const std::vector<std::string> taken = device_kinds();
  for (uint32_t i = 0; i < given.device_count; ++i) {
    const paddle_device_api& device =
        d.item(given.devices, i, "device", PADDLE_END_OF(paddle_device_api, last_error_location));
    if (const std::string problem = problem_of(device); !problem.empty())
      d.reject(str("device ", i, ": ", problem));
    const std::string name = device.name;
    const auto is_named = [&](const paddle_device_api* each) { return name == each->name; };
    if (std::ranges::find(taken, name) != taken.end() ||
        std::ranges::any_of(parts.devices, is_named) || find_backend(name))
      d.reject(str("device ", i, ": the name '", name, "' is taken"));
    parts.devices.push_back(&device);
  }
}

/// Checks passes, and reads the rules that are text.
void read_passes(const Descriptors& d, const paddle_plugin& given, Parts& parts) {
  constexpr uint32_t kMaxPasses = 1000;
  if (given.pass_count > kMaxPasses) d.reject(str("more than ", kMaxPasses, " passes"));
  const std::string& owner = parts.plugin.provider.name;
  for (uint32_t i = 0; i < given.pass_count; ++i) {
    const paddle_pass& pass = d.item(given.passes, i, "pass", PADDLE_END_OF(paddle_pass, run));
    if (is_empty(pass.name) || !pass.run) d.reject(str("pass ", i, ": name and run must be set"));
    if (!is_word(pass.name))
      d.reject(str("pass ", i, ": '", pass.name,
                   "': a name has lower-case letters, digits and '_', a letter first"));
    if (pass.stage < PADDLE_STAGE_IMPORT || pass.stage > PADDLE_STAGE_SCHEDULE)
      d.reject(str("pass ", pass.name, ": there is no stage ", pass.stage));
    const std::string name = owner + "." + pass.name;
    if (std::ranges::any_of(parts.passes, [&](const auto& p) { return p.name == name; }))
      d.reject(str("two passes are called ", pass.name));
    parts.passes.push_back({owner + " " + parts.plugin.provider.version, name, &pass});
  }
}

/// Rules by operation as YAML.
void read_sharding_text(const Descriptors& d, const char* text, const std::string& file,
                        Parts& parts) {
  if (is_empty(text)) return;
  const config::Node document = config::parse_document(text, file + ":sharding_rules");
  if (!document.is_map()) d.reject("sharding_rules: expected rules by operation");
  read_sharding_rules(document, parts);
}

/// Checks the rules in C of a schema; gives them by the names of operations there.
std::map<std::string, NativeRules> read_rules(const Descriptors& d, const paddle_operation& given,
                                              uint32_t number, const std::string& base,
                                              const Parts& parts) {
  const paddle_operation operation = known_part(given);
  constexpr uint32_t kMaxRules = 10000;
  if (operation.rule_count > kMaxRules)
    d.reject(str("operation ", number, ": more than ", kMaxRules, " rules"));
  const Provider& provider = parts.plugin.provider;
  std::map<std::string, NativeRules> out;
  for (uint32_t i = 0; i < operation.rule_count; ++i) {
    const paddle_rules& rules =
        d.item(operation.rules, i, "rules", PADDLE_END_OF(paddle_rules, operation));
    if (is_empty(rules.operation)) d.reject(str("rules ", i, ": operation must be set"));
    const std::string name = rules.operation;
    const paddle_rules known = known_part(rules);
    if (!known.infer && !known.decompose && !known.vjp && !known.cost && !known.view)
      d.reject(str("rules of ", name, ": has none"));
    if (!out.emplace(name, NativeRules{provider.name + " " + provider.version,
                                       provider.name + "." + name, base + ":rules", known})
             .second)
      d.reject(str("there are two rules of ", name));
  }
  const config::Node schema = config::parse_document(operation.schema, base + ":operations");
  for (const auto& [name, rules] : out)
    if (!schema.is_map() || !schema.find(name))
      d.reject(str("rules of ", name, ": the schema has no such operation"));
  return out;
}

/// Checks the descriptors and turns them into parts; nothing is registered.
void read_descriptors(const std::string& path, const paddle_plugin& given, Parts& parts) {
  const Descriptors d(path);
  constexpr uint32_t kMaxDescriptors = 100000;
  if (given.operation_count > kMaxDescriptors || given.kernel_count > kMaxDescriptors)
    d.reject("more than 100000 operations or kernels");
  read_devices(d, given, parts);
  const std::string base = std::filesystem::path(path).filename().string();
  read_transports(d, given, base, parts);
  read_tables(d, given, base, parts);
  read_readers(d, given, base, parts);
  read_compilers(d, given, parts);
  const std::string file = base + ":operations";
  for (uint32_t i = 0; i < given.operation_count; ++i) {
    const paddle_operation& operation =
        d.item(given.operations, i, "operation", PADDLE_END_OF(paddle_operation, schema));
    if (is_empty(operation.schema)) d.reject(str("operation ", i, ": has no schema"));
    parts.definitions.add_schema(operation.schema, file, "",
                                 read_rules(d, operation, i, base, parts));
  }
  const std::vector<std::string> own = parts.definitions.names();
  for (uint32_t i = 0; i < given.kernel_count; ++i) {
    const paddle_kernel& kernel =
        d.item(given.kernels, i, "kernel", PADDLE_END_OF(paddle_kernel, prepare));
    if (is_empty(kernel.operation) || is_empty(kernel.backend) || !kernel.prepare)
      d.reject(str("kernel ", i, ": operation, backend and prepare must be set"));
    KernelContext context;
    context.plugin = parts.plugin.provider.name + " " + parts.plugin.provider.version;
    context.operation = kernel.operation;
    context.backend = kernel.backend;
    if (!find_op(context.operation) && std::ranges::find(own, context.operation) == own.end())
      d.reject(str("kernel ", i, ": unknown operation '", context.operation, "'",
                   did_you_mean(context.operation, own)));
    const auto is_named = [&](const paddle_device_api* each) {
      return context.backend == each->name;
    };
    if (!find_backend(context.backend) && std::ranges::none_of(parts.devices, is_named))
      d.reject(str("kernel of ", context.operation, ": unknown backend '", context.backend, "'"));
    context.dtypes = dtypes_of(d, kernel.dtypes, context.operation);
    context.kernel = &kernel;
    parts.kernels.push_back(std::move(context));
  }
  std::vector<std::string> on_cpu;
  for (const KernelContext& kernel : parts.kernels)
    if (kernel.backend == "cpu") on_cpu.push_back(kernel.operation);
  parts.definitions.require_kernels(on_cpu);
  parts.definitions.check_codes();
  read_passes(d, given, parts);
  read_sharding_text(d, given.sharding_rules, base, parts);
  if (!is_empty(given.rewrite_rules)) parts.rules = given.rewrite_rules;
  parts.rules_file = base + ":rewrite_rules";
}

ObjectFile checked_object_file(const std::string& path) {
  ObjectFile object = read_object_file(path);
  if (object.note.abi_major != PADDLE_PLUGIN_ABI_MAJOR)
    fail(ErrorCode::kDevice, path, ": was built for version ", object.note.abi_major, ".",
         object.note.abi_minor, " of the plug-in interface, this program has ",
         PADDLE_PLUGIN_ABI_MAJOR, ".", PADDLE_PLUGIN_ABI_MINOR);
  check_name(path, object.note.name, object.note.version);
  if (!object.defined.empty() && std::ranges::find(object.defined, kEntry) == object.defined.end())
    fail(ErrorCode::kDevice, path, ": does not export ", kEntry);
  return object;
}

}  // namespace

Info native_info(const std::string& path) {
  ObjectFile object = checked_object_file(path);
  Info out;
  out.path = path;
  out.name = object.note.name;
  out.version = object.note.version;
  out.is_native = true;
  out.abi_major = object.note.abi_major;
  out.abi_minor = object.note.abi_minor;
  out.needed = std::move(object.needed);
  out.exported = std::move(object.defined);
  return out;
}

std::unique_ptr<Parts> open_native_plugin(const std::string& path) {
  const ObjectFile object = checked_object_file(path);
  check_not_loaded(path, object.note.name);
  attribute_crashes();
  const std::string absolute = std::filesystem::absolute(path).string();
  const std::string label = object.note.name + " " + object.note.version;
  void* handle = nullptr;
  std::string change;
  {
    const KeepProcessState keep(change);
    const Frame frame(label.c_str(), "loading", path.c_str());
    handle = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!handle) {
    std::string why = dlerror();
    if (why.starts_with(absolute + ": ")) why = why.substr(absolute.size() + 2);
    fail(ErrorCode::kDevice, path, ": cannot be loaded: ", why);
  }
  const auto entry = reinterpret_cast<paddle_plugin_main_function>(dlsym(handle, kEntry));
  if (!entry) fail(ErrorCode::kDevice, path, ": does not export ", kEntry);

  static std::deque<std::string> labels;
  note_code(reinterpret_cast<const void*>(entry), labels.emplace_back(label).c_str());
  // For functions that are called later. One that was built for a later version may write more than
  // this one knows before it can be asked for its version.
  struct Given {
    paddle_plugin plugin;
    std::byte more[4096];
  };
  static std::deque<Given> kept;
  paddle_plugin& given = kept.emplace_back().plugin;
  given.struct_size = sizeof given;
  paddle_status status = PADDLE_INTERNAL;
  {
    const KeepProcessState keep(change);
    const Frame frame(label.c_str(), kEntry, "");
    status = entry(&host(), &given);
  }
  const Descriptors d(path);
  if (status != PADDLE_OK) d.reject(str(kEntry, " gave the status ", status));
  if (given.struct_size < PADDLE_END_OF(paddle_plugin, version))
    d.reject(str("its struct_size ", given.struct_size, " is too small"));
  const paddle_plugin known = known_part(given);
  if (known.needs_minor > PADDLE_PLUGIN_ABI_MINOR)
    d.reject(str("needs version ", PADDLE_PLUGIN_ABI_MAJOR, ".", known.needs_minor,
                 " of the plug-in interface, this program has ", PADDLE_PLUGIN_ABI_MAJOR, ".",
                 PADDLE_PLUGIN_ABI_MINOR));
  if (is_empty(known.name) || is_empty(known.version)) d.reject("name and version must be set");
  if (known.name != object.note.name || known.version != object.note.version)
    d.reject(str("calls itself ", known.name, " ", known.version, ", its note says ", label));
  Plugin plugin;
  plugin.provider = {known.name, known.version};
  if (known.summary) plugin.summary = known.summary;
  plugin.state_change = change;
  auto parts = std::make_unique<Parts>(std::move(plugin));
  read_descriptors(path, known, *parts);
  parts->keys = config::read_kind_keys(
      known.keys, std::filesystem::path(path).filename().string() + ":options", {});
  if (known.start || known.start_with)
    parts->start = [start = known.start, start_with = known.start_with,
                    change = &parts->plugin.state_change, label](const KindOptions& options) {
      paddle_call call;
      const OptionStruct given(options);
      paddle_status started = PADDLE_INTERNAL;
      {
        const KeepProcessState keep(*change);
        const Frame frame(label.c_str(), "start", "");
        started = start_with ? start_with(&host(), given.get(), &call) : start(&host(), &call);
      }
      if (started != PADDLE_OK) throw_status(call, started, "start");
    };
  if (known.stop)
    parts->stop = [stop = known.stop, label] {
      const Frame frame(label.c_str(), "stop", "");
      stop();
    };
  return parts;
}

}  // namespace paddle::plugin
