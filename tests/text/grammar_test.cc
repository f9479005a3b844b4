// Grammars of generated text: regular expressions, JSON Schema, numbers within bounds, and the sets
// of tokens that they allow.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "text/grammar/constraint.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/regex.h"
#include "text/load.h"

namespace paddle::grammar {
namespace {

bool matches(Matcher& matcher, std::string_view text) {
  StateId state = matcher.start();
  for (const char c : text) state = matcher.next(state, static_cast<uint8_t>(c));
  return state != kNoState && matcher.accepts(state);
}

bool regex_matches(const std::string& pattern, std::string_view text) {
  Matcher matcher(compile_regex(pattern));
  return matches(matcher, text);
}

Matcher schema(const std::string& text) {
  return Matcher(compile_json_schema(parse_json(text, "schema")));
}

std::string rejection(const std::string& text) {
  try {
    schema(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.message();
  }
  return "";
}

TEST(Regex, MatchesWholeTexts) {
  EXPECT_TRUE(regex_matches("ab*c", "abbbc"));
  EXPECT_FALSE(regex_matches("ab*c", "abbb"));
  EXPECT_FALSE(regex_matches("ab*c", "xabc"));
  EXPECT_TRUE(regex_matches("^(yes|no)$", "no"));
  EXPECT_TRUE(regex_matches("a|bc|", ""));
  EXPECT_TRUE(regex_matches("[a-c\\-]+", "a-cb"));
  EXPECT_FALSE(regex_matches("[^a-c]", "b"));
  EXPECT_TRUE(regex_matches("\\d{2,3}", "123"));
  EXPECT_FALSE(regex_matches("\\d{2,3}", "1"));
  EXPECT_FALSE(regex_matches("\\d{2,3}", "1234"));
  EXPECT_TRUE(regex_matches("(ab){2}", "abab"));
  EXPECT_TRUE(regex_matches("x{,2}", "x{,2}"));  // no count: text
  EXPECT_TRUE(regex_matches("(?:a+?)(?<name>b)", "aab"));
  EXPECT_TRUE(regex_matches("\\x41\\u00e9\\t", "A\u00e9\t"));
  EXPECT_TRUE(regex_matches(".", "\u20ac"));
  EXPECT_FALSE(regex_matches(".", "\n"));
  EXPECT_FALSE(regex_matches(".", "\xe2\x82"));
  EXPECT_TRUE(regex_matches("[\u00e0-\u00ff]{2}", "\u00e9\u00e8"));
  EXPECT_FALSE(regex_matches("[\u00e0-\u00ff]", "a"));
  EXPECT_TRUE(regex_matches("[^x]", "\U0001F600"));
}

TEST(Regex, SaysWhatIsWrong) {
  for (const char* pattern :
       {"(", "a)", "[a", "*a", "a**", "\\", "a{3,2}", "(?=a)", "(?!a)", "\\1", "\\p{L}", "a^b",
        "a$b", "[b-a]", "[[:alpha:]]", "a{99999}", "\\xZZ", "((((a{100}){100}){100}){100})"})
    EXPECT_THROW(compile_regex(pattern), Error) << pattern;
}

TEST(Regex, AgreesWithCharactersOneByOne) {
  // Every code point is in the class or not, at the borders of UTF-8's lengths too.
  Matcher matcher(compile_regex("[\u007e-\u0081\u07fe-\u0801\ufffe-\U00010001]"));
  for (const uint32_t code :
       {0x7dU, 0x7eU, 0x7fU, 0x80U, 0x81U, 0x82U, 0x7fdU, 0x7feU, 0x7ffU, 0x800U, 0x801U, 0x802U,
        0xfffdU, 0xfffeU, 0xffffU, 0x10000U, 0x10001U, 0x10002U}) {
    std::string text;
    if (code < 0x80)
      text = {static_cast<char>(code)};
    else if (code < 0x800)
      text = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    else if (code < 0x10000)
      text = {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
              static_cast<char>(0x80 | (code & 63))};
    else
      text = {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)),
              static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
    const bool wanted = (code >= 0x7e && code <= 0x81) || (code >= 0x7fe && code <= 0x801) ||
                        (code >= 0xfffe && code <= 0x10001);
    EXPECT_EQ(matches(matcher, text), wanted) << std::hex << code;
  }
}

TEST(JsonSchema, Objects) {
  Matcher m = schema(R"({"type": "object", "properties": {"name": {"type": "string"},
      "age": {"type": "integer"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}}},
      "required": ["name"]})");
  EXPECT_TRUE(matches(m, R"({"name":"x"})"));
  EXPECT_TRUE(matches(m, R"({"name": "x", "age": 3, "tags": ["a", "b"]})"));
  EXPECT_TRUE(matches(m, "{\n  \"name\": \"x\",\n  \"tags\": []\n}"));
  EXPECT_FALSE(matches(m, R"({"age":3})"));
  EXPECT_FALSE(matches(m, R"({"name":"x","tags":["c"]})"));
  EXPECT_FALSE(matches(m, R"({"name":"x",})"));
  EXPECT_FALSE(matches(m, R"({"name":"x","age":3.5})"));
  EXPECT_FALSE(matches(m, R"({"name":"x","other":1})"));
  EXPECT_FALSE(matches(m, "{\"name\":\"x\ny\"}"));
}

TEST(JsonSchema, EveryKeywordThatIsSupported) {
  const auto check = [](const std::string& text, const std::vector<std::string>& good,
                        const std::vector<std::string>& bad) {
    Matcher m = schema(text);
    for (const std::string& each : good) EXPECT_TRUE(matches(m, each)) << text << " " << each;
    for (const std::string& each : bad) EXPECT_FALSE(matches(m, each)) << text << " " << each;
  };
  check(R"({"const": {"a": [1, null]}})", {R"({"a":[1,null]})"}, {"{}", "1"});
  check(R"({"enum": [1, "x", true]})", {"1", "\"x\"", "true"}, {"2", "x", "false"});
  check(R"({"type": ["string", "null"]})", {"null", "\"\""}, {"1"});
  check(R"({"anyOf": [{"type": "integer"}, {"type": "boolean"}]})", {"12", "true"}, {"\"\""});
  check(R"({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]},
      {"type": "object", "properties": {"k": {"const": "b"}, "v": {"type": "number"}},
       "required": ["k", "v"]}]})",
        {R"({"k":"a"})", R"({"k":"b","v":-1.5e3})"}, {R"({"k":"b"})", R"({"k":"c"})"});
  check(R"({"allOf": [{"type": "null"}]})", {"null"}, {"0"});
  check(R"({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3})",
        {"[1,2]", "[1, 2, 3]"}, {"[1]", "[1,2,3,4]", "[]"});
  check(R"({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}],
      "items": false, "minItems": 1})",
        {"[\"a\"]", "[\"a\",1]"}, {"[]", "[1]", "[\"a\",1,2]"});
  check(R"({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"},
      "minItems": 3})",
        {"[\"a\",null,null]", "[\"a\",null,null,null]"}, {"[\"a\",null]"});
  check(R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"});
  check(R"({"type": "string", "minLength": 2, "maxLength": 3})",
        {"\"ab\"", "\"a\\n\u20ac\"", "\"\\u001f\\\"/\""}, {"\"a\"", "\"abcd\"", "\"a\"b"});
  check(R"({"type": "string", "pattern": "^a[0-9]+$"})", {"\"a12\""}, {"\"a\"", "\"xa1\""});
  check(R"({"type": "string", "pattern": "b\"+"})", {R"("ab\"c")", R"("b\"\"")"},
        {"\"b\"", "\"ab\""});
  check(R"({"type": "string", "format": "date"})", {"\"2024-02-28\"", "\"1999-12-31\""},
        {"\"2024-02-30\"", "\"2024-13-01\"", "\"2024-04-31\""});
  check(R"({"type": "string", "format": "uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""},
        {"\"123e4567\""});
  check(R"({"type": "string", "format": "ipv4"})", {"\"255.0.10.1\""},
        {"\"256.0.0.1\"", "\"01.2.3.4\""});
  check(R"({"type": "object"})", {"{}", R"({"a": {"b": [1, "c", null]}})"}, {"[]", "{\"a\"}"});
  check(R"({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1})",
        {R"({"x":1,"y":2})"}, {"{}", R"({"x":"1"})"});
  check(R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"a":1})"});
  check(R"({"type": "object", "required": ["a"]})", {R"({"a":[1]})"}, {"{}"});
  check("{}", {"1", "\"x\"", "[{}, null]", "-0.5"}, {"", "tru", "01"});
  check("true", {"[]"}, {"["});
  check(R"({"$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"},
      "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["v", "next"]}},
      "$ref": "#/$defs/node"})",
        {R"({"v":1,"next":{"v":2,"next":null}})"}, {R"({"v":1,"next":{"v":2}})"});
}

TEST(JsonSchema, RejectsWhatItCannotEnforceAndNamesThePath) {
  const auto expect = [](const std::string& text, const std::string& part) {
    const std::string message = rejection(text);
    EXPECT_NE(message.find(part), message.npos) << text << ": " << message;
  };
  expect(R"({"properties": {"a": {"type": "integer", "multipleOf": 3}}})",
         "$.properties.a.multipleOf");
  expect(R"({"type": "array", "uniqueItems": true})", "$.uniqueItems");
  expect(R"({"not": {"type": "null"}})", "$.not");
  expect(R"({"type": "object", "patternProperties": {}})", "patternProperties");
  expect(R"({"type": "string", "format": "idn-email"})", "formats are");
  expect(R"({"type": "strng"})", "did you mean 'string'?");
  expect(R"({"type": "string", "minLenght": 3})", "did you mean 'minLength'?");
  expect(R"({"type": "string", "minLength": 5, "maxLength": 3})", "above maxLength");
  expect(R"({"type": "string", "pattern": "("})", "$.pattern");
  expect(R"({"type": "string", "pattern": "a", "maxLength": 3})", "only one of");
  expect(R"({"$ref": "other.json"})", "not a place in this schema");
  expect(R"({"$ref": "#/$defs/x"})", "there is no '#/$defs/x'");
  expect(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", "may both hold");
  expect(R"({"enum": []})", "$.enum");
  expect(R"({"type": "integer", "minimum": 5, "maximum": 4})", "no number");
  expect("false", "no value is allowed");
  expect("[]", "expected an object or a boolean");
  expect(R"({"type": "array", "minItems": 100000})", "expected an integer from 0 to");
  expect(
      R"({"type": "array", "items": {"type": "array", "items": {"type": "array", "minItems": 9000},
      "minItems": 9000}, "minItems": 9000})",
      "");
}

TEST(JsonSchema, ASchemaThatOnlyRefersToItselfHasNoText) {
  Matcher m = schema(R"({"$ref": "#"})");
  EXPECT_EQ(m.start(), kNoState);
}

TEST(Numbers, IntegersWithinBounds) {
  for (const auto& [low, high] :
       {std::pair{0, 9}, {3, 17}, {-5, 5}, {-120, -7}, {99, 1001}, {0, 0}}) {
    Matcher m =
        schema(str(R"({"type": "integer", "minimum": )", low, R"(, "maximum": )", high, "}"));
    for (int x = -1100; x <= 1100; ++x)
      EXPECT_EQ(matches(m, std::to_string(x)), x >= low && x <= high)
          << low << " " << high << " " << x;
    EXPECT_FALSE(matches(m, "-0"));
    EXPECT_FALSE(matches(m, "007"));
  }
}

TEST(Numbers, DecimalsWithinBounds) {
  Matcher m = schema(R"({"type": "number", "exclusiveMinimum": 0, "maximum": 1.25})");
  for (int k = -300; k <= 300; ++k) {
    char text[16];
    std::snprintf(text, sizeof text, "%.2f", k / 100.0);
    EXPECT_EQ(matches(m, text), k > 0 && k <= 125) << text;
  }
  EXPECT_TRUE(matches(m, "1"));
  EXPECT_FALSE(matches(m, "0"));
  EXPECT_FALSE(matches(m, "0.0"));
  EXPECT_FALSE(matches(m, "1.2501"));
  Matcher narrow = schema(R"({"type": "number", "minimum": -0.7, "maximum": -0.5})");
  EXPECT_TRUE(matches(narrow, "-0.65"));
  EXPECT_FALSE(matches(narrow, "-0.75"));
  EXPECT_FALSE(matches(narrow, "0.6"));
}

// The bounds that Pydantic writes for PositiveInt and its like, zod for every integer, and OpenAPI
// for 64 bits.
TEST(Numbers, BoundsOfOneSideAndOfManyDigits) {
  struct Case {
    const char* bounds;
    std::vector<const char*> inside, outside;
  };
  const Case integers[] = {
      {R"("minimum": 0)",
       {"0", "1", "9", "10", "999999999999999"},
       {"-1", "-0", "01", "0.5", "1e3"}},
      {R"("exclusiveMinimum": 0)", {"1", "10", "123456"}, {"0", "-1"}},
      {R"("minimum": 17)", {"17", "18", "99", "100"}, {"16", "9", "-17", "0"}},
      {R"("maximum": 100)", {"100", "99", "0", "-1", "-999999999999999"}, {"101", "1000"}},
      {R"("exclusiveMaximum": -5)", {"-6", "-50"}, {"-5", "0", "6"}},
      {R"("minimum": -9007199254740991, "maximum": 9007199254740991)",
       {"9007199254740991", "-9007199254740991", "0", "9007199254740990", "999999999999999"},
       {"9007199254740992", "-9007199254740992", "9010000000000000", "10000000000000000"}},
      {R"("minimum": 0, "maximum": 9007199254740991)",
       {"0", "9007199254740991", "8999999999999999"},
       {"-1", "9007199254740992"}},
      {R"("minimum": -9223372036854775808, "maximum": 9223372036854775807)",
       {"9223372036854775807", "-9223372036854775808"},
       {"9223372036854775808", "-9223372036854775809"}},
      {R"("maximum": 18446744073709551615, "minimum": 18446744073709551614)",
       {"18446744073709551615", "18446744073709551614"},
       {"18446744073709551616", "1"}},
      {R"("minimum": 0.5, "maximum": 2.5)", {"1", "2"}, {"0", "3"}},
      {R"("minimum": -2.5, "maximum": -0.5)", {"-2", "-1"}, {"-3", "0", "1"}},
      {R"("minimum": 1e20)",
       {"100000000000000000000", "999999999999999999999"},
       {"99999999999999999999", "1"}},
      {R"("minimum": 3, "exclusiveMinimum": 3, "maximum": 1e300)", {"4", "1000"}, {"3"}}};
  for (const Case& each : integers) {
    Matcher m = schema(str(R"({"type": "integer", )", each.bounds, "}"));
    for (const char* text : each.inside)
      EXPECT_TRUE(matches(m, text)) << each.bounds << " " << text;
    for (const char* text : each.outside)
      EXPECT_FALSE(matches(m, text)) << each.bounds << " " << text;
  }
  const Case numbers[] = {
      {R"("minimum": 0)", {"0", "0.5", "12.3456", "0.0"}, {"-0.5", "-1", ".5", "1."}},
      {R"("exclusiveMinimum": 0)", {"0.0001", "3"}, {"0", "0.0", "-1"}},
      {R"("minimum": 0, "maximum": 1e9)",
       {"1000000000", "1000000000.0", "0.1", "999999999.9999"},
       {"1000000000.0001", "1000000001", "-0.1"}},
      {R"("maximum": -0.25)", {"-0.25", "-0.2500", "-1", "-0.3"}, {"-0.2", "0", "-0.2499"}},
      {R"("minimum": -1.5, "exclusiveMaximum": 1.5)",
       {"-1.5", "1.4999", "0", "1"},
       {"1.5", "-1.5001"}},
      {R"("minimum": 0.1234, "maximum": 0.1236)",
       {"0.1234", "0.1235", "0.1236"},
       {"0.123", "0.12", "0.1237", "0.1233", "0", "1"}},
      {R"("minimum": 1.5, "maximum": 1.5)", {"1.5", "1.50"}, {"1", "1.51", "2"}},
      {R"("minimum": 1e-20, "maximum": 2e-20)", {"0.00000000000000000001"}, {"0", "0.1"}}};
  for (const Case& each : numbers) {
    Matcher m = schema(str(R"({"type": "number", )", each.bounds, "}"));
    for (const char* text : each.inside)
      EXPECT_TRUE(matches(m, text)) << each.bounds << " " << text;
    for (const char* text : each.outside)
      EXPECT_FALSE(matches(m, text)) << each.bounds << " " << text;
  }
}

// All numbers of three digits and two decimals against all bounds of a few.
TEST(Numbers, BoundsAreThoseOfTheValues) {
  const double bounds[] = {-10.25, -1, -0.07, 0, 0.3, 0.99, 1, 9.5, 10, 10.01};
  for (const double low : bounds)
    for (const double high : bounds) {
      if (low > high) continue;
      Matcher m =
          schema(str(R"({"type": "number", "minimum": )", low, R"(, "maximum": )", high, "}"));
      for (int k = -1100; k <= 1100; ++k) {
        char text[16];
        std::snprintf(text, sizeof text, "%.2f", k / 100.0);
        const bool inside = k >= std::lround(low * 100) && k <= std::lround(high * 100);
        EXPECT_EQ(matches(m, text), inside) << low << " " << high << " " << text;
        if (k % 10 == 0 && k % 100 != 0) {
          std::snprintf(text, sizeof text, "%.1f", k / 100.0);
          EXPECT_EQ(matches(m, text), inside) << low << " " << high << " " << text;
        }
      }
    }
}

TEST(JsonSchema, TooLargeSaysWhere) {
  std::string items;
  for (int i = 0; i < 9; ++i)
    items += str(i ? ", " : "", "\"k", i, R"(": {"type": "integer", "maximum": )",
                 std::string(300, '7'), "}");
  EXPECT_NE(
      rejection(R"({"type": "object", "properties": {)" + items + "}}").find("$.properties.k"),
      std::string::npos);
}

TEST(Matcher, EveryPathOfASchemaLeadsToJsonThatIsValid) {
  // Random walks that end as soon as they may.
  Matcher m = schema(R"({"type": "object", "properties": {"a": {"type": "array", "items":
      {"type": ["number", "null"]}, "maxItems": 4}, "b": {"type": "string", "maxLength": 6},
      "c": {"type": "object", "properties": {"d": {"type": "boolean"}}}}, "required": ["b"]})");
  std::mt19937 random(7);
  int complete = 0;
  for (int walk = 0; walk < 300; ++walk) {
    std::string text;
    StateId state = m.start();
    while (text.size() < 400 && !(m.accepts(state) && !m.can_continue(state))) {
      std::vector<uint8_t> next;
      for (int byte = 0; byte < 256; ++byte)
        if (m.next(state, static_cast<uint8_t>(byte)) != kNoState)
          next.push_back(static_cast<uint8_t>(byte));
      ASSERT_FALSE(next.empty()) << text;
      // Structure is as likely as characters of strings.
      std::vector<uint8_t> marks;
      for (const uint8_t byte : next)
        if (std::string_view("{}[],:\"").find(static_cast<char>(byte)) != std::string_view::npos)
          marks.push_back(byte);
      const auto& from = !marks.empty() && random() % 2 == 0 ? marks : next;
      text += static_cast<char>(from[random() % from.size()]);
      state = m.next(state, static_cast<uint8_t>(text.back()));
    }
    if (!m.accepts(state)) continue;
    ++complete;
    const auto value = nlohmann::json::parse(text, nullptr, false);
    ASSERT_FALSE(value.is_discarded()) << text;
    EXPECT_TRUE(value.at("b").is_string());
    if (value.contains("a")) {
      EXPECT_LE(value["a"].size(), 4U);
    }
  }
  EXPECT_GT(complete, 100);
}

TEST(Constraint, AllowsExactlyTheTokensThatStayInTheGrammar) {
  const auto tokenizer = tokenizers::load_tokenizer("tests/text/data/llama2.json");
  const auto texts = std::make_shared<const TokenTexts>(tokenizer);
  Constraint constraint(compile_regex("[a-z ]{3}"), texts);
  StateId state = constraint.start();
  for (int step = 0; step < 4 && constraint.can_continue(state); ++step) {
    const bool first = step == 0;
    const auto allowed = constraint.allowed(state, first);
    std::optional<tokenizers::TokenId> chosen;
    for (tokenizers::TokenId token = 0; token < tokenizer.vocabulary_size(); ++token) {
      const bool stays = constraint.next(state, token, first) != kNoState;
      ASSERT_EQ(allowed->contains(token), stays) << token;
      if (stays && !chosen) chosen = token;
    }
    ASSERT_TRUE(chosen);
    state = constraint.next(state, *chosen, first);
  }
  EXPECT_TRUE(constraint.accepts(state));
}

}  // namespace
}  // namespace paddle::grammar
