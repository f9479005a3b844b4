// Loading plug-ins: those of YAML, and every way in which a file is rejected.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/files.h"
#include "ops/core/call.h"
#include "plugin/elf.h"
#include "plugin/plugin.h"
#include "plugin/text_rules.h"
#include "runtime/execute.h"

namespace paddle::plugin {
namespace {

namespace fs = std::filesystem;

class Loader : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("paddle_plugin_test_" + std::string(info->name()) + "_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  /// The message without the folder, and the exit status in front.
  std::string error_of(const std::function<void()>& f) const {
    try {
      f();
    } catch (const Error& e) {
      std::string what = e.what();
      const std::string prefix = folder_.string() + "/";
      for (size_t at; (at = what.find(prefix)) != std::string::npos;) what.erase(at, prefix.size());
      return std::to_string(static_cast<int>(e.code())) + ": " + what;
    }
    return "";
  }
  std::string error_of_file(const std::string& name, const std::string& text) const {
    const std::string path = write(name, text);
    return error_of([&] { load(path); });
  }

  fs::path folder_;
};

std::string yaml(const std::string& name, const std::string& operations) {
  return "plugin: {name: " + name + ", version: 1.0.0, abi: 1}\noperations:\n" + operations;
}

constexpr const char* kTwice =
    "  twice:\n"
    "    signature: (x:T, times:float=2.0) -> out\n"
    "    doc: x times a number.\n"
    "    body: x * times\n"
    "    alias: double\n";

TEST_F(Loader, RunsAnOperationOfYaml) {
  const std::string path = write("one.plugin.yaml", yaml("one", kTwice));
  const Plugin& plugin = load(path);
  EXPECT_EQ(plugin.provider.name, "one");
  EXPECT_EQ(plugin.operations, std::vector<std::string>{"one.twice"});
  EXPECT_EQ(plugin.sha256.size(), 64u);
  EXPECT_EQ(&plugin, &load(path)) << "a file that is named twice is loaded once";
  EXPECT_EQ(find_op("one.double"), find_op("one.twice"));
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const Op& op = get_op("one.twice");
  const Tensor x(Array::from<float>({1, 2, 3}, {3}));
  const Tensor y = call_single(op, {x}, default_attrs(op));
  EXPECT_EQ(y.array().data<float>()[2], 6.0f);
}

TEST_F(Loader, ErrorsOfBodiesNameTheOperation) {
  load(write("shapes.plugin.yaml", yaml("shapes",
                                        "  add:\n    signature: (x:T, y:T) -> out\n"
                                        "    doc: A sum.\n    body: x + y\n")));
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const Op& op = get_op("shapes.add");
  const Tensor x(Array::from<float>({1, 2, 3}, {3})), y(Array::from<float>({1, 2}, {2}));
  try {
    call_single(op, {x, y}, default_attrs(op));
    FAIL() << "the shapes do not fit";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_TRUE(e.message().starts_with("shapes.add: ")) << e.what();
    ASSERT_FALSE(e.notes().empty());
    EXPECT_NE(e.notes()[0].find("shapes.plugin.yaml:6:"), std::string::npos) << e.notes()[0];
  }
}

TEST_F(Loader, TypesMayBeText) {
  load(write("typed.plugin.yaml",
             yaml("typed",
                  "  ends:\n    signature: (x:T, y, times:int=2) -> out, same\n    doc: Two ends.\n"
                  "    infer: [\"y.dtype [dim(x, 0) * times, dim(x, -1) // 2 + 1]\", like x]\n"
                  "    body: |\n"
                  "      first = cast(concat([x, x], axis=0), y.dtype)\n"
                  "      return [first[:, :2], x]\n"
                  "  rounded:\n    signature: (x:T) -> out\n    doc: x, rounded.\n"
                  "    dtypes: {x: float}\n    body: round(x)\n    vjp: g\n"
                  "    gradient: {of: surrogate}\n")));
  const Op& op = get_op("typed.ends");
  const TensorType x{DType::kF32, {Dim::symbol("n"), 3}}, y{DType::kI64, {2}};
  Attrs attrs = default_attrs(op);
  attrs[0] = int64_t{3};
  const Inferred types = infer_results(op, attrs, {Tensor(x, nullptr), Tensor(y, nullptr)});
  ASSERT_EQ(types.results.size(), 2u);
  EXPECT_EQ(types.results[0].text(), "int64[3*n, 2]");
  EXPECT_EQ(types.results[1].text(), "float32[n, 3]");
  EXPECT_TRUE(get_op("typed.rounded").differentiable());
  EXPECT_TRUE(has_surrogate_gradient(get_op("typed.rounded")));
  EXPECT_FALSE(has_surrogate_gradient(op));

  load(write("sizes.plugin.yaml",
             yaml("sizes",
                  "  both:\n    signature: (x) -> values, places, rest\n    doc: Three.\n"
                  "    infer: [\"x.dtype [?n, dim(x, 1)]\", \"int64 [?n]\", \"int64 [?]\"]\n"
                  "    body: \"[x, nonzero(x)[:, 0], nonzero(x)[:, 0]]\"\n")));
  const Op& both = get_op("sizes.both");
  EXPECT_TRUE(both.has(kRunTimeShape));
  const Inferred later = infer_results(both, default_attrs(both), {Tensor(x, nullptr)});
  EXPECT_EQ(later.results[0].shape[0].text(), later.results[1].shape[0].text());
  EXPECT_NE(later.results[0].shape[0].text(), later.results[2].shape[0].text());
  EXPECT_FALSE(later.results[0].shape[0].constant());
  EXPECT_EQ(later.results[0].shape[1].constant(), 3);

  const auto rejected = [&](const std::string& infer) {
    return error_of_file("bad.plugin.yaml",
                         yaml("next",
                              "  a: {signature: \"(x:T, n:int=1) -> out\", doc: A., body: x, "
                              "infer: \"" +
                                  infer + "\"}\n"));
  };
  const std::string place = "3: bad.plugin.yaml:3: infer: '";
  EXPECT_EQ(rejected("like z"), place + "like z': 'z' is not an operand of every call");
  EXPECT_EQ(rejected("float33 [n]"),
            place + "float33 [n]': expected a dtype or OPERAND.dtype, found 'float33'");
  EXPECT_EQ(rejected("float32 n"),
            place + "float32 n': expected 'like OPERAND' or 'DTYPE [DIM, …]'");
  EXPECT_EQ(rejected("x.dtype [?N]"), place + "x.dtype [?N]': '?N': after ? there may be a name");
  EXPECT_EQ(rejected("x.dtype [m]"), place +
                                         "x.dtype [m]': there is no integer attribute 'm'; a dim "
                                         "of an operand is dim(OPERAND, AXIS)");
  EXPECT_EQ(rejected("x.dtype [dim(x, n)]"), place + "x.dtype [dim(x, n)]': 'n' is not an axis");
  EXPECT_NE(rejected("x.dtype [1 +]").find(place), std::string::npos);
  EXPECT_EQ(error_of_file("bad.plugin.yaml",
                          yaml("next", "  a: {signature: (x:T) -> out, doc: A., infer: like x}\n")),
            "3: bad.plugin.yaml:3: next.a: has neither a body nor a kernel for the CPU");
}

TEST_F(Loader, RejectsFilesOfYaml) {
  EXPECT_EQ(error_of([&] { load((folder_ / "none.so").string()); }),
            "2: none.so: no such plug-in file");
  const auto rejected = [&](const std::string& text) {
    return error_of_file("bad.plugin.yaml", text);
  };
  EXPECT_EQ(rejected("operations: {}\n"), "3: bad.plugin.yaml:1:1: 'plugin' is missing (a map)");
  EXPECT_EQ(rejected(yaml("paddle", kTwice)), "6: bad.plugin.yaml: the name 'paddle' is reserved");
  EXPECT_EQ(rejected(yaml("comm", kTwice)), "6: bad.plugin.yaml: the name 'comm' is reserved");
  EXPECT_EQ(
      rejected("plugin: {name: next, version: 1.0.0, abi: 2}\noperations:\n" + std::string(kTwice)),
      "6: bad.plugin.yaml: is for version 2 of the plug-in interface, this program has 1");
  EXPECT_EQ(
      rejected("plugin: {name: next, version: new, abi: 1}\noperations:\n" + std::string(kTwice)),
      "6: bad.plugin.yaml: expected a version such as 1.0.0, found 'new'");
  EXPECT_EQ(rejected(yaml("next", "  twice: {signature: (x:T) -> out, doc: Two.}\n")),
            "3: bad.plugin.yaml:3: twice: has no body, and no types (infer) for a kernel");
  EXPECT_EQ(rejected(yaml("next", "  twice: {signature: (x:T) -> out, doc: Two., body: x *}\n")),
            "3: bad.plugin.yaml:3:56: expected an expression, found the end of the line");
  EXPECT_EQ(rejected(yaml("next", "  Twice: {signature: (x:T) -> out, doc: Two., body: x}\n")),
            "3: bad.plugin.yaml:3: Twice: a name has lower-case letters, digits and '_'");
  EXPECT_EQ(
      rejected(yaml("next",
                    "  noise: {signature: (x:T) -> out, doc: Noise., "
                    "body: \"bernoulli(x)\"}\n")),
      "3: bad.plugin.yaml:3:56: 'bernoulli' is random, and a body must give the same each time");
  EXPECT_EQ(rejected(yaml("next",
                          "  draw: {signature: (x:T) -> out, doc: Draw., body: x, "
                          "traits: [random]}\n")),
            "3: bad.plugin.yaml:3: draw: operations of plug-ins cannot have the trait 'random'");
  EXPECT_EQ(find_provider("next"), nullptr);
  for (const Op* op : all_ops()) EXPECT_FALSE(op->name().starts_with("next.")) << op->name();
}

TEST_F(Loader, BodiesAreNotRandom) {
  load(write("noisy.plugin.yaml", yaml("noisy",
                                       "  drop: {signature: (x:T) -> out, doc: Drop., "
                                       "body: \"dropout(x, 0.5, training=true)\"}\n")));
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const RandomScope random(Tensor(Array::from<uint64_t>({7, 1}, {2})));
  const Op& op = get_op("noisy.drop");
  const Tensor x(Array::from<float>({1, 2, 3}, {3}));
  const std::string error = error_of([&] { call_single(op, {x}, default_attrs(op)); });
  EXPECT_TRUE(error.starts_with("2: noisy.drop: ")) << error;
  EXPECT_NE(error.find("a random operation cannot be called here"), std::string::npos) << error;
  EXPECT_EQ(RandomScope::next_stream(), 0) << "the streams of the caller stay as they are";
}

TEST_F(Loader, RejectsTwoFilesOfOneName) {
  load(write("a.plugin.yaml", yaml("same", kTwice)));
  EXPECT_TRUE(error_of_file("b.plugin.yaml", yaml("same", kTwice))
                  .starts_with("6: b.plugin.yaml: the plug-in same is loaded already, from "));
}

TEST_F(Loader, RejectsFilesThatOthersMayWrite) {
  const std::string path = write("open.plugin.yaml", yaml("open", kTwice));
  chmod(path.c_str(), 0666);
  EXPECT_EQ(error_of([&] { load(path); }),
            "6: open.plugin.yaml: other users may write it (chmod o-w)");
}

TEST_F(Loader, ComparesHashes) {
  const std::string path = write("hash.plugin.yaml", yaml("hash", kTwice));
  EXPECT_TRUE(error_of([&] {
                load(path, {{}, "00000000"});
              }).starts_with("6: hash.plugin.yaml: has the sha256 "));
  EXPECT_EQ(load(path, {{}, ""}).provider.name, "hash");
  EXPECT_TRUE(error_of([&] {
                load(path, {{}, "00000000"});
              }).starts_with("6: hash.plugin.yaml: has the sha256 "));
}

TEST_F(Loader, TraitsAreOnlyThoseThatAreStated) {
  load(write("reach.plugin.yaml", yaml("reach",
                                       "  plain: {signature: (x:T) -> out, doc: Plain., body: x}\n"
                                       "  file: {signature: (x:T) -> out, doc: File., body: x, "
                                       "traits: [accesses_files]}\n")));
  EXPECT_EQ(get_op("reach.plain").def->traits, 0u);
  EXPECT_EQ(get_op("reach.file").def->traits, static_cast<uint32_t>(kAccessesFiles));
}

TEST_F(Loader, ConfigsNamePluginsOnceTheyAreLoaded) {
  write("conf.plugin.yaml", yaml("conf", kTwice));
  config::Node document =
      config::parse_document("plugins: [conf.plugin.yaml]\n", (folder_ / "config.yaml").string());
  load_configured(document);
  EXPECT_EQ(document.find("plugins")->items[0].text, "conf >= 1.0.0");
  load_configured(document);  // as a saved config
  const auto rejected = [&](const std::string& list) {
    config::Node other =
        config::parse_document("plugins: " + list + "\n", (folder_ / "config.yaml").string());
    return error_of([&] { load_configured(other); });
  };
  EXPECT_EQ(rejected("[conf >= 1.1]"),
            "3: config.yaml:1:11: needs the plug-in conf ≥ 1.1, loaded is 1.0.0");
  EXPECT_EQ(rejected("[absent >= 2]"),
            "3: config.yaml:1:11: needs the plug-in absent ≥ 2; name its file with --plugin or "
            "PADDLE_PLUGINS");
  EXPECT_EQ(rejected("[absent.so]"), "3: config.yaml:1:11: plugins: no such file: absent.so");
  EXPECT_EQ(rejected("[{path: conf.plugin.yaml, size: 3}]"),
            "3: config.yaml:1:36: plugins: unknown key 'size'");
  EXPECT_EQ(rejected("conf.plugin.yaml"),
            "3: config.yaml:1:10: 'plugins': expected a list of files, found 'conf.plugin.yaml'");
}

TEST_F(Loader, RejectsWhatIsNoSharedObject) {
  EXPECT_EQ(error_of_file("text.so", "hello"),
            "6: text.so: is not a shared object (ELF) or YAML file");
  EXPECT_EQ(error_of_file("empty.so", ""),
            "6: empty.so: is not a shared object (ELF) or YAML file");
  EXPECT_EQ(error_of_file("short.so", "\177ELF"), "6: short.so: the file is truncated");
  // This program is an ELF file, but no plug-in.
  const std::string self = read_file("/proc/self/exe");
  EXPECT_EQ(error_of_file("program.so", self),
            "6: program.so: is not a plug-in: it has no note (PADDLE_PLUGIN_NOTE)");
  std::string other = self.substr(0, 4096);
  other[18] = static_cast<char>(243);
  other[19] = 0;
  EXPECT_TRUE(error_of_file("riscv.so", other)
                  .starts_with("6: riscv.so: was built for RISC-V, this machine is "));
  other = self.substr(0, 4096);
  other[4] = 1;
  EXPECT_EQ(error_of_file("small.so", other),
            "6: small.so: was built for a machine of another kind (not 64-bit little-endian)");
}

TEST_F(Loader, DamagedObjectsAreErrors) {
  const std::string self = read_file("/proc/self/exe").substr(0, 1 << 13);
  for (size_t size = 0; size < 4096; size += 31) {
    const std::string path = write("cut.so", self.substr(0, size));
    EXPECT_THROW(read_object_file(path), Error) << size;
  }
  // Bytes of the headers, one by one.
  for (size_t at = 4; at < 600; ++at) {
    std::string damaged = self;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xFF);
    const std::string path = write("damaged.so", damaged);
    EXPECT_THROW(read_object_file(path), Error) << at;
  }
}

}  // namespace
}  // namespace paddle::plugin
