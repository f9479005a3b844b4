// Keys that several tools read, checked by whichever reads the file.
#include "config/sections.h"

#include <gtest/gtest.h>

#include "config/overrides.h"

namespace paddle::config {
namespace {

const Schema& run() {
  static const Schema schema = [] {
    Schema train;
    train.add("epochs", Spec::integer().at_least(1).required());
    Schema out;
    out.add("data", Spec::map(Schema().add("path", Spec::path().required())).required())
        .add("train", Spec::map(train))
        .add("seed", Spec::integer().fallback("7"))
        .add("loss", Spec::text())
        .add("step", Spec::text())
        .one_of({"loss", "step"});
    return out;
  }();
  return schema;
}

void check_run(const Node& document, Diagnostics& diagnostics) {
  if (document.find("seed")->as_int() == 13)
    diagnostics.add(ErrorCode::kConfig, "an unlucky seed", document.find("seed")->location());
}

Schema serve() { return Schema().add("port", Spec::integer()); }

std::string errors_of(const std::string& text, const std::vector<std::string>& own) {
  register_section({.name = "serve", .owner = "server", .doc = "a server", .schema = serve});
  register_keys({.owner = "trainer", .schema = run, .check = check_run});
  const Node document = parse_document(text, "/dir/c.yaml");
  Diagnostics diagnostics;
  check_other_keys(document, own, diagnostics);
  return diagnostics.empty() ? "" : diagnostics.combined().what();
}

TEST(Sections, KeysOfOthersAreOptionalButChecked) {
  EXPECT_EQ(errors_of("serve: {port: 1}", {"serve"}), "");
  EXPECT_EQ(errors_of("loss: a\nstep: b\ntrain: {epochs: 2}\nserve: {port: 80}", {}), "");
  EXPECT_NE(errors_of("train: {epoch: 2}", {"serve"})
                .find("c.yaml:1:9: unknown key 'epoch' in 'train' (did you mean 'epochs'?)"),
            std::string::npos);
  EXPECT_NE(errors_of("train: {epochs: 0}", {}).find("'train.epochs': expected an integer"),
            std::string::npos);
  EXPECT_NE(errors_of("serve: {prt: 0}", {"data"}).find("did you mean 'port'?"), std::string::npos);
}

TEST(Sections, OwnKeysAreLeftToTheCaller) {
  EXPECT_EQ(errors_of("data: {anything: 1}\nserve: 3\noutput: x", {"data", "serve", "output"}), "");
}

TEST(Sections, KeysThatNoToolReadsAreErrors) {
  EXPECT_NE(errors_of("servee: {port: 1}", {"serve"})
                .find("c.yaml:1:1: unknown key 'servee' (did you mean 'serve'?)"),
            std::string::npos);
  EXPECT_NE(errors_of("seed:\n", {}).find("'seed': the value is empty"), std::string::npos);
}

TEST(Sections, AnOwnerChecksMoreThanItsSchema) {
  EXPECT_NE(errors_of("seed: 13", {}).find("c.yaml:1:7: an unlucky seed"), std::string::npos);
  // Not while the schema finds mistakes.
  EXPECT_EQ(errors_of("seed: 13\nlosss: a", {}).find("unlucky"), std::string::npos);
}

TEST(Sections, AreAddedWhileTheProgramRuns) {
  EXPECT_NE(errors_of("added: {level: 3}", {}).find("unknown key 'added'"), std::string::npos);
  const auto section = [](const std::string& name, int64_t most) {
    return TopSection{.name = name, .owner = "a plug-in", .doc = "a section", .schema = [most] {
                        return Schema().add("level", Spec::integer().at_most(most));
                      }};
  };
  section_registry().add({section("added", 5)}, {"plugin.yaml", 3});
  EXPECT_EQ(errors_of("added: {level: 3}", {}), "");
  EXPECT_NE(errors_of("added: {level: 7}", {}).find("'added.level'"), std::string::npos);
  try {
    section_registry().add({section("fresh", 1), section("added", 2)}, {"other.yaml", 9});
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()),
              "other.yaml:9: section of configs 'added' is already registered by plugin.yaml:3");
  }
  EXPECT_EQ(section_registry().find("fresh"), nullptr) << "all or nothing";
  section_registry().remove({"added"});
  EXPECT_NE(errors_of("added: {level: 3}", {}).find("unknown key 'added'"), std::string::npos);
}

}  // namespace
}  // namespace paddle::config
