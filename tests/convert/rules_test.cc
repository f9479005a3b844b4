#include "convert/rules.h"

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "convert/convert.h"

namespace paddle::convert {
namespace {

Rules rules_of(const std::string& yaml) {
  const std::string path =
      testing::TempDir() + "/paddle_rules_" + std::to_string(::getpid()) + ".yaml";
  write_file_atomically(path, yaml);
  Rules out = Rules::read(path);
  std::filesystem::remove(path);
  return out;
}

std::string rejection(const std::string& yaml) {
  try {
    rules_of(yaml);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_GT(error.location().line, 0);
    return error.message();
  }
  ADD_FAILURE() << "accepted: " << yaml;
  return "";
}

TEST(ConvertRules, ApplyInOrderToTheNameSoFar) {
  Rules rules = rules_of(
      "- {match: '^model\\.(\\d+)\\.', rename: 'blocks.$1.'}\n"
      "- {match: 'aa', rename: 'bb'}\n"
      "- {name: blocks.3.bbc, rename: last}\n"
      "- {drop: 'bias$'}\n"
      "- {transpose: '^last$', perm: [1, 0]}\n");
  EXPECT_EQ(rules.apply("model.12.x").name, "blocks.12.x");
  EXPECT_EQ(rules.apply("other.model.1.x").name, "other.model.1.x");
  const Rules::Outcome last = rules.apply("model.3.aac");
  EXPECT_EQ(last.name, "last");
  EXPECT_TRUE(last.transposed);
  EXPECT_EQ(last.perm, (std::vector<int64_t>{1, 0}));
  EXPECT_TRUE(rules.apply("model.3.bias").dropped);
  EXPECT_TRUE(rules.unused({}).empty());
}

TEST(ConvertRules, AddToNumbersOfGroups) {
  Rules rules = rules_of(
      "- {match: '^layer(\\d+)\\.', rename: 'stage.$1.', add: -1}\n"
      "- {match: '([a-z$]+)(\\d\\d)', rename: '$$$1-$02[$&]', add: 5}\n");
  EXPECT_EQ(rules.apply("layer4.0.w").name, "stage.3.0.w");
  EXPECT_EQ(rules.apply("layer12.layer1.w").name, "stage.11.layer1.w");
  EXPECT_EQ(rules.apply("a$95.b10").name, "$a$-100[a$95].$b-15[b10]");
  try {
    rules.apply("layer0.w");
    ADD_FAILURE() << "a number below 0";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_GT(error.location().line, 0);
  }
  EXPECT_NE(rejection("- {drop: x, add: 1}\n").find("add needs match"), std::string::npos);
}

TEST(ConvertRules, TellWhatMatchesNothing) {
  Rules rules = rules_of("- {drop: nothing}\n");
  rules.apply("weight");
  ASSERT_EQ(rules.unused({"weight"}).size(), 1u);
  Rules exact = rules_of("- {name: wieght, rename: w}\n");
  exact.apply("weight");
  try {
    exact.unused({"weight"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("did you mean 'weight'"), std::string::npos);
  }
}

TEST(ConvertRules, RejectWhatIsNoRule) {
  EXPECT_NE(rejection("a: b\n").find("list of rules"), std::string::npos);
  EXPECT_NE(rejection("- {match: a}\n").find("rename is missing"), std::string::npos);
  EXPECT_NE(rejection("- {match: a, drop: b, rename: c}\n").find("one of"), std::string::npos);
  EXPECT_NE(rejection("- {drop: a, rename: b}\n").find("rename needs"), std::string::npos);
  EXPECT_NE(rejection("- {drop: '['}\n").find("regular expression"), std::string::npos);
  EXPECT_NE(rejection("- {match: '(a)(b)', rename: '$3'}\n").find("names a group"),
            std::string::npos);
  EXPECT_NE(rejection("- {transpose: a, perm: [0, 2]}\n").find("each axis"), std::string::npos);
  EXPECT_NE(rejection("- {rename_all: a}\n").find("unknown key"), std::string::npos);
}

TEST(ConvertRules, NamesTooLongForExpressionsAreRejected) {
  Rules rules = rules_of("- {drop: '(a|b)*c'}\n");
  EXPECT_THROW(rules.apply(std::string(100000, 'a')), Error);
}

TEST(ConvertSize, ReadsUnits) {
  EXPECT_EQ(parse_size("2GB"), 2'000'000'000u);
  EXPECT_EQ(parse_size("1.5 MiB"), 1'572'864u);
  EXPECT_EQ(parse_size("100"), 100u);
  for (const char* wrong : {"", "GB", "-1", "2 parsecs", "0", "1e30"})
    EXPECT_THROW(parse_size(wrong), Error) << wrong;
}

}  // namespace
}  // namespace paddle::convert
