// The placed document tree: YAML and JSON to nodes, and hostile documents.
#include "config/document.h"

#include <gtest/gtest.h>

namespace paddle::config {
namespace {

Node yaml(const std::string& text) { return parse_document(text, "f.yaml"); }
Node json(const std::string& text) { return parse_document(text, "f.json"); }

std::string error_of(const std::string& text, const std::string& name = "f.yaml") {
  try {
    parse_document(text, name);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "no error";
}

std::string places(const Node& node) {
  std::string out;
  const ScalarLocations map(node);
  for (size_t i = 0; i < node.text.size(); ++i) {
    if (node.text[i] != 'X') continue;
    const SourcePosition where = map.at(i);
    out += str(where.line, ":", where.column, " ");
  }
  return out;
}

TEST(Document, KeepsKindsQuotesAndPlaces) {
  const Node root =
      yaml("a: 1\nb: [x, 'y', \"z\"]\nc:\n  d: |\n    body\n  e: ~\n  f:\ng: {h: i}\n");
  ASSERT_TRUE(root.is_map());
  EXPECT_EQ(root.entries.size(), 4u);
  EXPECT_EQ(root.find("a")->location().text(), "f.yaml:1:4");
  EXPECT_EQ(root.find("b")->items[1].quote, Node::Quote::kSingle);
  EXPECT_EQ(root.find("b")->items[2].quote, Node::Quote::kDouble);
  EXPECT_EQ(root.find("b")->items[2].location().text(), "f.yaml:2:13");
  EXPECT_EQ(root.find("c")->find("d")->quote, Node::Quote::kLiteral);
  EXPECT_EQ(root.find("c")->find("d")->text, "body\n");
  EXPECT_TRUE(root.find("c")->find("e")->is_null());
  EXPECT_TRUE(root.find("c")->find("f")->is_null());
  EXPECT_EQ(root.find("c")->find("f")->location().text(), "f.yaml:7:3");
  EXPECT_EQ(root.find_entry("g")->key.location().text(), "f.yaml:8:1");
  EXPECT_EQ(root.find("g")->find("h")->text, "i");
}

TEST(Document, TypesFollowTheCoreSchema) {
  const Node root = yaml(
      "a: 1e-4\nb: no\nc: on\nd: true\ne: 0x10\nf: 0o17\ng: .inf\nh: 1_000\ni: '3'\nj: -.5\n"
      "k: 1e5\nl: 9223372036854775808\nm: 1.0\nn: nan\no: 12:30\np: -9223372036854775808\n");
  EXPECT_EQ(root.find("a")->as_double(), 1e-4);
  EXPECT_EQ(root.find("b")->as_string(), "no");
  EXPECT_FALSE(root.find("b")->try_bool());
  EXPECT_FALSE(root.find("c")->try_bool());
  EXPECT_TRUE(root.find("d")->as_bool());
  EXPECT_EQ(root.find("e")->as_int(), 16);
  EXPECT_EQ(root.find("f")->as_int(), 15);
  EXPECT_GT(root.find("g")->as_double(), 1e300);
  EXPECT_EQ(root.find("h")->as_int(), 1000);
  EXPECT_FALSE(root.find("i")->try_int());
  EXPECT_EQ(root.find("j")->as_double(), -0.5);
  EXPECT_EQ(root.find("k")->as_int(), 100000);
  EXPECT_FALSE(root.find("l")->try_int());
  EXPECT_FALSE(root.find("m")->try_int());
  EXPECT_FALSE(root.find("n")->try_double());
  EXPECT_FALSE(root.find("o")->try_int());
  EXPECT_EQ(root.find("p")->as_int(), INT64_MIN);
  try {
    root.find("i")->as_int();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "f.yaml:9:4: expected an integer, found '3' in quotes, which is text");
  }
}

TEST(Document, PlacesInsideScalars) {
  EXPECT_EQ(places(*yaml("m: |\n    aX\n\n      X = é X\n").find("m")), "2:6 4:7 4:13 ");
  EXPECT_EQ(places(*yaml("m: |  # note\n  aX\n").find("m")), "2:4 ");
  EXPECT_EQ(places(*yaml("m:\n  aX b\n  cX\n").find("m")), "2:4 3:4 ");
  EXPECT_EQ(places(*yaml("m: >\n  aX b\n  cX\n").find("m")), "2:4 3:4 ");
  EXPECT_EQ(places(*yaml("m: 'it''sX'\n").find("m")), "1:10 ");
  EXPECT_EQ(places(*yaml("m: \"\\u00e9\\nX\\tX\"\n").find("m")), "1:13 1:16 ");
  EXPECT_EQ(places(*json("{\"m\": \"a\\nX\\ud83d\\ude00X\"}").find("m")), "1:11 1:24 ");
  EXPECT_EQ(places(*yaml("é: éX\n").find("é")), "1:5 ");
  EXPECT_EQ(places(*yaml("m: |\r\n  aX\r\n  X\r\n").find("m")), "2:4 3:3 ");
}

TEST(Document, BlockHeadersAreKeys) {
  const Node root = yaml("blocks:\n  f(x, y=[1, 2], z=\"a\"): |\n    return x\n");
  EXPECT_EQ(root.find("blocks")->entries[0].key.text, "f(x, y=[1, 2], z=\"a\")");
}

TEST(Document, RejectsWhatYamlCppLetsPass) {
  EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"), "f.yaml:3:1: duplicate key 'a', first in line 1");
  EXPECT_EQ(error_of("a:\n\tb: 1\n"), "f.yaml:2:1: a tab in the indentation (use spaces)");
  EXPECT_EQ(error_of("a: &x [1, *x]\n"), "f.yaml:1:11: an alias inside the value that it names");
  EXPECT_NE(error_of("a: {<<: {b: 1}}\n").find("f.yaml:1:5: merge keys"), std::string::npos);
  EXPECT_NE(error_of("a: !!int 3\n").find("tags"), std::string::npos);
  EXPECT_NE(error_of("a: !foo {}\n").find("tags"), std::string::npos);
  EXPECT_NE(error_of("a: 1\n---\nb: 2\n").find("second document"), std::string::npos);
  EXPECT_NE(error_of("[a, b]: 1\n").find("a key must be plain text, found a list"),
            std::string::npos);
  EXPECT_NE(error_of("? {a: b}\n: 1\n").find("a key must be plain text"), std::string::npos);
  EXPECT_NE(error_of("~: 1\n").find("a key must be plain text"), std::string::npos);
  EXPECT_NE(error_of("a: [1, 2\n").find("YAML syntax"), std::string::npos);
  EXPECT_NE(error_of("a: \xff\n").find("f.yaml:1:4: not UTF-8"), std::string::npos);
  EXPECT_NE(error_of(std::string("a: b\0c\n", 7)).find("control character"), std::string::npos);
  EXPECT_NE(error_of("a: *nope\n").find("f.yaml:1"), std::string::npos);
}

TEST(Document, CollectsAllDuplicates) {
  const std::string all = error_of("a: 1\na: 2\nb: {c: 1, c: 2}\n");
  EXPECT_NE(all.find("f.yaml:2:1"), std::string::npos);
  EXPECT_NE(all.find("\nf.yaml:3:11"), std::string::npos);
}

TEST(Document, BoundsHostileDocuments) {
  EXPECT_NE(error_of(std::string(100000, '[')), "no error");
  EXPECT_NE(error_of(std::string(100000, '[') + std::string(100000, ']')).find("200 levels"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_NE(error_of(deep).find("200 levels"), std::string::npos);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = str("*a", i - 1);
    bomb += str("a", i, ": &a", i, " [", last);
    for (int k = 0; k < 9; ++k) bomb += ", " + last;
    bomb += "]\n";
  }
  EXPECT_NE(error_of(bomb).find("million"), std::string::npos);
  std::string nested = "a0: &a0 [x]\n";
  for (int i = 1; i < 400; ++i) nested += str("a", i, ": &a", i, " [*a", i - 1, "]\n");
  EXPECT_NE(error_of(nested).find("200 levels"), std::string::npos);
  EXPECT_NE(error_of("a: " + std::string(2 << 20, 'x') + "\n").find("1 MiB"), std::string::npos);
  EXPECT_THROW(SourceText(SourceKind::kYaml, "f", std::string(17 << 20, 'x')), Error);
  EXPECT_NE(error_of(std::string(100000, '['), "f.json").find("200 levels"), std::string::npos);
}

TEST(Document, AliasesExpand) {
  const Node root = yaml("a: &x {b: 1}\nc: *x\nd: [*x, *x]\n");
  EXPECT_EQ(root.find("c")->find("b")->as_int(), 1);
  EXPECT_EQ(root.find("d")->items[1].find("b")->as_int(), 1);
}

TEST(Document, EmptyIsNull) {
  EXPECT_TRUE(yaml("").is_null());
  EXPECT_TRUE(yaml("# only a comment\n").is_null());
  EXPECT_TRUE(yaml("---\n").is_null());
}

TEST(Document, ReadsStrictJson) {
  const Node root = json("{\"a\": [1, -2.5e3, true, null, \"x\"],\n \"b\": {}}");
  EXPECT_EQ(root.find("a")->items[1].as_double(), -2500);
  EXPECT_TRUE(root.find("a")->items[2].as_bool());
  EXPECT_TRUE(root.find("a")->items[3].is_null());
  EXPECT_EQ(root.find_entry("b")->key.location().text(), "f.json:2:2");
  for (const char* bad :
       {"",     "{",     "[1,]",    "{\"a\":1,}",       "{'a': 1}", "[01]",  "[1.]",      "[.5]",
        "nul",  "[1] 2", "\"\\x\"", "\"\\ud800\"",      "\"a\nb\"", "[NaN]", "{\"a\" 1}", "// x\n1",
        "[+1]", "\"abc", "[1 2]",   "{\"a\":1 \"b\":2}"}) {
    EXPECT_NE(error_of(bad, "f.json").find("JSON syntax"), std::string::npos) << bad;
  }
  EXPECT_NE(error_of("{\"a\": 1, \"a\": 2}", "f.json").find("duplicate"), std::string::npos);
}

TEST(Document, PrintsWhatReadsBack) {
  const std::string text =
      "a: 1\nb: [x, \"y, z\", \"1\"]\nc:\n  d: |\n    x = 1\n\n      y = 2\n  e: null\n"
      "  f(x, y=1):\n    - relu\n    - conv2d:\n        k: 3\n      as: q\nh: {}\ni: []\n"
      "j: \"\"\nk: \"a: b\"\nl: -1\nm: \"true\"\nn: \"#x\"\n";
  const Node root = yaml(text);
  const std::string printed = dump_yaml(root);
  EXPECT_EQ(printed, text);
  EXPECT_EQ(dump_yaml(yaml(printed)), printed);
  EXPECT_EQ(dump_json(yaml("a: [1, no, 1e-4, null, \"2\", true]\n")),
            "{\"a\": [1, \"no\", 1e-04, null, \"2\", true]}");
}

TEST(Document, PrintsOrigins) {
  EXPECT_EQ(dump_yaml(yaml("a: 1\nb:\n  c: [1, 2]\n"), {.origin = true}),
            "a: 1  # f.yaml:1\nb:\n  c: [1, 2]  # f.yaml:3\n");
}

}  // namespace
}  // namespace paddle::config
