// Strict sections, overrides, inheritance and references of configurations.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "config/overrides.h"
#include "config/schema.h"

namespace paddle::config {
namespace {

Schema schema() {
  Schema data;
  data.add("batch_size", Spec::integer().at_least(1).fallback("32"))
      .add("path", Spec::path())
      .add("splits", Spec::list(Spec::real().above(0).at_most(1)).length(1, 3));
  Schema adam, sgd;
  adam.add("lr", Spec::real().above(0).fallback("1e-3"));
  sgd.add("lr", Spec::real().above(0).required());
  Schema root;
  root.add("data", Spec::map(data).required())
      .add("optimizer", Spec::choice("type", {{"adam", adam}, {"sgd", sgd}}).fallback("adam"))
      .add("mode", Spec::word({"fast", "exact"}).fallback("fast"))
      .add("seed", Spec::integer().fallback("0"))
      .add("shuffle", Spec::boolean().fallback("true"))
      .add("name", Spec::text())
      .add("label", Spec::map_of(Spec::integer()))
      .add("stop", Spec::integer().or_else(Spec::word({"never"})).fallback("never"))
      .renamed("random_seed", "seed")
      .accept("quant");
  return root;
}

struct Resolved {
  Node tree;
  Diagnostics diagnostics;
  std::string errors() const { return diagnostics.empty() ? "" : diagnostics.combined().what(); }
};

Resolved resolve(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Resolved out;
  out.tree = parse_document(text, "/dir/c.yaml");
  for (const std::string& argument : overrides) apply_override(out.tree, parse_override(argument));
  schema().resolve(out.tree, "", out.diagnostics);
  return out;
}

template <class F>
std::string error_of(ErrorCode code, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(Config, FillsDefaultsAndTypes) {
  const Resolved r = resolve("data: {path: x/y, splits: [0.5, 5e-1]}\nname: no\n");
  EXPECT_EQ(r.errors(), "");
  const Section root(r.tree);
  EXPECT_EQ(root.section("data").integer("batch_size"), 32);
  EXPECT_EQ(root.section("data").text("path"), "/dir/x/y");
  EXPECT_EQ(root.section("data").reals("splits")[1], 0.5);
  EXPECT_EQ(root.section("optimizer").real("lr"), 1e-3);
  EXPECT_EQ(root.text("name"), "no");
  EXPECT_TRUE(root.boolean("shuffle"));
  EXPECT_FALSE(root.has("label"));
}

TEST(Config, ReportsEverythingAtOnce) {
  const std::string all = resolve(R"(data:
  batch_sise: 3
  batch_size: 0
  splits: [0.5, 2, x]
learing_rate: 1
mode: fsat
seed: 1.5
shuffle: yes
optimizer: {type: sgd}
label: {a: b}
)")
                              .errors();
  for (const char* part :
       {"/dir/c.yaml:2:3: unknown key 'batch_sise' in 'data' (did you mean 'batch_size'?)",
        "/dir/c.yaml:3:15: 'data.batch_size': expected an integer of at least 1, found 0",
        "/dir/c.yaml:4:17: 'data.splits.1': expected a number above 0 and at most 1, found 2",
        "/dir/c.yaml:4:20: 'data.splits.2'", "/dir/c.yaml:5:1: unknown key 'learing_rate'",
        "'mode': expected one of fast, exact, found 'fsat' (did you mean 'fast'?)",
        "'seed': expected an integer, found '1.5'",
        "'shuffle': expected true or false, found 'yes'", "'lr' is missing in 'optimizer'",
        "'label.a': expected an integer"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
  EXPECT_NE(resolve("seed: 1\n").errors().find("'data' is missing"), std::string::npos);
  EXPECT_NE(resolve("data: 3\n").errors().find("'data': expected a map, found '3'"),
            std::string::npos);
  EXPECT_NE(resolve("data: {}\noptimizer: adma\n").errors().find("did you mean 'adam'"),
            std::string::npos);
  EXPECT_NE(resolve("data: {}\nseed: '3'\n").errors().find("in quotes, which is text"),
            std::string::npos);
  EXPECT_EQ(resolve("data: {}\nquant: {anything: 1}\nstop: 3\n").errors(), "");
  EXPECT_NE(resolve("data: {}\nstop: 3.5\n").errors().find("or one of never"), std::string::npos);
}

TEST(Config, RenamedKeysWarn) {
  const Resolved r = resolve("data: {}\nrandom_seed: 7\n");
  EXPECT_EQ(r.errors(), "");
  EXPECT_EQ(Section(r.tree).integer("seed"), 7);
  ASSERT_EQ(r.diagnostics.warnings().size(), 1u);
}

TEST(Config, Overrides) {
  const Resolved r = resolve("data: {splits: [0.1, 0.2]}\n",
                             {"optimizer.lr=3e-4", "optimizer.type=sgd", "data.splits.1=0.9",
                              "data.splits+=0.3", "name=a=b", "shuffle=false"});
  EXPECT_EQ(r.errors(), "");
  EXPECT_EQ(Section(r.tree).section("optimizer").real("lr"), 3e-4);
  EXPECT_EQ(Section(r.tree).section("data").reals("splits"), (std::vector<double>{0.1, 0.9, 0.3}));
  EXPECT_EQ(Section(r.tree).text("name"), "a=b");
  EXPECT_EQ(resolve("data: {}\n", {"seed=x"}).errors(),
            "command line: 'seed': expected an integer, found 'x'");
  EXPECT_NE(dump_yaml(r.tree, {.origin = true}).find("lr: 3e-4  # command line"),
            std::string::npos);
  EXPECT_NE(dump_yaml(r.tree, {.origin = true}).find("seed: 0  # default"), std::string::npos);
  for (const char* bad : {"data.splits.7=1", "data.splits.x=1", "name.x=1", "a..b=1"}) {
    EXPECT_NE(
        error_of(ErrorCode::kUsage, [&] { resolve("data: {splits: [1]}\nname: n\n", {bad}); }),
        "no error")
        << bad;
  }
  EXPECT_NE(error_of(ErrorCode::kUsage, [] { parse_override("a=[1"); }), "no error");
  EXPECT_TRUE(is_override("train.epochs=3"));
  EXPECT_FALSE(is_override("--x=3"));
  EXPECT_FALSE(is_override("dir/file=3"));
}

TEST(Config, OneKeyOutOfSeveralHasValuesOfItsOwn) {
  Schema crop, flip, root;
  crop.add("width", Spec::integer().at_least(1).required());
  flip.add("probability", Spec::real().fallback("0.5"));
  root.add("steps",
           Spec::list(Spec::named("step", {{"crop", Spec::map(crop)}, {"flip", Spec::map(flip)}})));
  const auto errors = [&](const std::string& text, std::string* completed = nullptr) {
    Node tree = parse_document(text, "c.yaml");
    Diagnostics diagnostics;
    root.resolve(tree, "", diagnostics);
    if (completed) *completed = dump_yaml(tree);
    return diagnostics.empty() ? std::string() : std::string(diagnostics.combined().what());
  };
  std::string completed;
  EXPECT_EQ(errors("steps: [{crop: {width: 3}}, {flip: {}}]", &completed), "");
  EXPECT_NE(completed.find("probability: 0.5"), std::string::npos) << completed;
  const auto rejects = [&](const std::string& text, const std::string& why) {
    const std::string found = errors(text);
    EXPECT_NE(found.find(why), std::string::npos) << found;
  };
  rejects("steps: [{flipp: {}}]",
          "c.yaml:1:10: 'steps.0': unknown step 'flipp' (did you mean 'flip'?); there are: crop, "
          "flip");
  rejects("steps: [{crop: {width: 0}}]", "'steps.0.crop.width': expected an integer of at least 1");
  rejects("steps: [{crop: {width: 3}, flip: {}}]",
          "'steps.0': a step reads `- name: {key: value}`, found a map");
  rejects("steps: [crop]", "'steps.0': a step reads `- name: {key: value}`, found 'crop'");
  rejects("steps: [{flip: 3}]", "'steps.0.flip': expected a map");
}

TEST(Config, EmptyPathsAreErrorsOfTheDocument) {
  EXPECT_NE(error_of(ErrorCode::kConfig,
                     [] { resolve_path(*resolve("data: {}\nname: ''\n").tree.find("name")); })
                .find("an empty path"),
            std::string::npos);
  // Neither a file that a config extends nor one that a model includes.
  const auto file = std::filesystem::temp_directory_path() / str("paddle_empty_", getpid());
  std::ofstream(file) << "extends: ''\n";
  Diagnostics diagnostics;
  const std::string message =
      error_of(ErrorCode::kConfig, [&] { read_extended(file.string(), diagnostics); });
  EXPECT_NE(message.find("an empty path"), std::string::npos) << message;
  EXPECT_NE(message.find(":1:10"), std::string::npos) << message;
  std::filesystem::remove(file);
}

TEST(Config, ExtendsMergesMapsAndReplacesLists) {
  namespace fs = std::filesystem;
  const fs::path dir = fs::temp_directory_path() / str("paddle_extends_", getpid());
  fs::create_directories(dir);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(dir / name) << text;
  };
  write("base.yaml",
        "a: {b: 1, c: [1, 2]}\nl: [1]\nt: [{crop: {size: 3}}, flip, {name: n, v: 1}]\n");
  write(
      "top.yaml",
      "extends: base.yaml\na: {b: 2}\nl+: [5]\nt~: {crop: {size: 4}, n: {v: 2}}\nnew: {k+: [1]}\n");
  write("loop.yaml", "extends: loop.yaml\n");
  write("bad.yaml", "extends: base.yaml\nt~: {nope: 1}\n");
  Diagnostics diagnostics;
  const Node root = read_extended((dir / "top.yaml").string(), diagnostics);
  EXPECT_EQ(dump_json(root),
            "{\"a\": {\"b\": 2, \"c\": [1, 2]}, \"l\": [1, 5], \"t\": [{\"crop\": {\"size\": 4}}, "
            "\"flip\", {\"name\": \"n\", \"v\": 2}], \"new\": {\"k\": [1]}}");
  EXPECT_NE(error_of(ErrorCode::kConfig,
                     [&] { read_extended((dir / "loop.yaml").string(), diagnostics); })
                .find("extends itself"),
            std::string::npos);
  EXPECT_NE(
      error_of(ErrorCode::kConfig, [&] { read_extended((dir / "bad.yaml").string(), diagnostics); })
          .find("no item 'nope'"),
      std::string::npos);
  fs::remove_all(dir);
}

TEST(Config, ReferencesResolveLast) {
  Node root = parse_document("a: {b: 3}\nc: ${a.b}\nd: x-${a.b}-${c}\ne: ${a}\n", "c.yaml");
  Diagnostics diagnostics;
  resolve_references(root, diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_EQ(root.find("c")->as_int(), 3);
  EXPECT_EQ(root.find("d")->text, "x-3-3");
  EXPECT_EQ(root.find("e")->find("b")->as_int(), 3);
  root = parse_document("a: ${b}\nb: ${a}\nc: ${x.y}\nd: ${a\n", "c.yaml");
  resolve_references(root, diagnostics);
  EXPECT_GE(diagnostics.errors().size(), 3u);
}

}  // namespace
}  // namespace paddle::config
