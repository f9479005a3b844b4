// Templates against what Python's jinja2 renders (make_templates.py), and templates that must stop.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/template.h"

namespace paddle::jinja {
namespace {

TEST(Jinja, RendersWhatPythonRenders) {
  const Value variables = from_json(read_json_file("tests/text/data/templates_variables.json"));
  std::ifstream file("tests/text/data/templates.jsonl");
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const Json golden = parse_json(line, "templates.jsonl");
    const std::string source = golden.find("template")->text;
    const Json& wanted = *golden.find("text");
    std::string error;
    try {
      const std::string text = Template(source, "t").render(variables);
      EXPECT_EQ(wanted.kind, Json::Kind::kString) << "accepted: " << source << "\n" << text;
      EXPECT_EQ(text, wanted.text) << source;
    } catch (const Error& e) {
      EXPECT_EQ(wanted.kind, Json::Kind::kNull) << source << "\n" << e.what();
    }
  }
  EXPECT_GT(count, 90);
}

std::string error_of(const std::string& source, const RenderLimits& limits = {}) {
  try {
    Template(source, "t").render(Value::list({}), limits);
  } catch (const Error& e) {
    return e.what();
  }
  return "rendered";
}

TEST(Jinja, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("a\n{% if x %}\n"), "t:2: expected 'endif', found the end of the template");
  EXPECT_EQ(error_of("a\n\n{{ x.y }}"), "t:3: 'x' is undefined");
  EXPECT_EQ(error_of("a\n{{ raise_exception('no system role') }}"), "t:2: no system role");
  EXPECT_EQ(error_of("{% include 'x' %}"),
            "t:1: Jinja's statement 'include' is not supported; a template has one file");
  EXPECT_EQ(error_of("{% includes 'x' %}"), "t:1: unknown statement 'includes'");
  EXPECT_EQ(error_of("{{ 'a' | urlize }}"), "t:1: Jinja's filter 'urlize' is not supported");
  EXPECT_EQ(error_of("{{ 'a' | urlise }}"), "t:1: there is no filter 'urlise'");
  EXPECT_EQ(error_of("{{ ['a'] | map('random') | list }}"),
            "t:1: Jinja's filter 'random' is not supported");
}

TEST(Jinja, TemplatesThatDoNotEndAreStopped) {
  RenderLimits limits;
  limits.steps = 100'000;
  EXPECT_EQ(error_of("{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}",
                     limits),
            "t:1: rendering takes more than 100000 steps");
  EXPECT_EQ(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
            "t:1: macros and expressions are nested too deeply");
  EXPECT_EQ(error_of("{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(60) %}"
                     "{% set ns.x = ns.x ~ ns.x %}{% endfor %}"),
            "t:1: rendering makes more than 256 MiB of values");
  EXPECT_EQ(error_of("{{ 'a' * 100000000000 }}"),
            "t:1: rendering makes more than 256 MiB of values");
  const std::string deep = std::string(1000, '(') + "1" + std::string(1000, ')');
  EXPECT_EQ(error_of("{{ " + deep + " }}"), "t:1: nested too deeply");
  std::string chain = "{{ 1";
  for (int i = 0; i < 20'000; ++i) chain += " + 1";
  EXPECT_EQ(error_of(chain + " }}"), "t:1: an expression of too many parts");
}

int64_t peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

// Sizes are checked before memory is taken, so that no template takes much more than its limit.
TEST(Jinja, TemplatesThatAskForGigabytesTakeLittle) {
  const RenderLimits limits{.steps = 1'000'000, .bytes = 16 << 20};
  const std::string set_long = "{% set x = '<' * 1500000 %}";
  const std::string doubled =
      "{% set ns = namespace(l=['a']) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
      "{% endfor %}";
#ifdef __SANITIZE_ADDRESS__
  constexpr int64_t kQuarantine = 256;  // freed memory that the sanitizer keeps
#else
  constexpr int64_t kQuarantine = 0;
#endif
  const int64_t before = peak_mib();
  for (const std::string& source :
       {std::string("{{ (range(1000)|list)|join('x'*10000000)|length }}"),
        std::string("{{ ('x'*10000000).join(range(1000)|map('string')) }}"),
        std::string("{{ 'a'|center(10000000000) }}"),
        std::string("{{ 'a'.ljust(10000000000) }}"),
        std::string("{{ '7'.zfill(9000000000000000000) }}"),
        set_long + "{{ x|list|length }}",
        set_long + "{{ x.split('<') }}",
        set_long + "{{ x|map('upper')|list }}",
        set_long +
            "{{ x|indent('    ' * 1000, true) }}{{ ('\n' * 1000000)|indent(x, true, true) }}",
        set_long + "{{ 'aaaaaaaaaaaaaaa'|replace('', x) }}",
        set_long + "{{ x|e|e|e|urlencode }}",
        set_long + "{{ '%s%s%s%s%s%s%s%s%s%s%s%s%s%s' % (x,x,x,x,x,x,x,x,x,x,x,x,x,x) }}",
        set_long + "{{ '{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}'.format(x) }}",
        set_long + "{{ [x,x,x,x,x,x,x,x,x,x,x,x,x,x]|tojson }}",
        set_long + "{{ [x,x,x,x,x,x,x,x,x,x,x,x,x,x]|string }}",
        set_long + "{{ x ~ [x,x,x,x,x,x,x,x,x,x,x,x,x,x] }}",
        set_long + "{{ x|wordwrap(1) }}",
        set_long + "{{ {x: x, 1: x, 2: x, 3: x, 4: x, 5: x, 6: x, 7: x, 8: x, 9: x}|xmlattr }}",
        set_long + "{% macro m(n) %}{{ x }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}"
                   "{{ m(500) }}",
        doubled + "{{ ns.l|string|length }}",
        doubled + "{{ ns.l|tojson|length }}",
        std::string("{{ [[[1]*10000]*10000]*10000 }}")}) {
    const std::string error = error_of(source, limits);
    EXPECT_TRUE(error == "t:1: rendering makes more than 16 MiB of values" ||
                error == "t:1: rendering takes more than 1000000 steps")
        << source << "\n"
        << error;
  }
  EXPECT_EQ(error_of(doubled + "{{ ns.l == [ns.l[0], ns.l[1]] }}{{ ns.l < [ns.l[1], 1] }}", limits),
            "t:1: rendering takes more than 1000000 steps");
  for (const char* source : {"{{ '%1000000000d'|format(1) }}", "{{ '%.99999999d' % 1 }}",
                             "{{ '%99999999999999999999d' % 1 }}"}) {
    const std::string error = error_of(source);
    EXPECT_TRUE(error.find("more than 511 characters") != error.npos ||
                error.find("a format that is too long") != error.npos)
        << error;
  }
  EXPECT_LT(peak_mib() - before, 200 + kQuarantine);
}

TEST(Jinja, IntegersBeyond64BitsAreNotComputedWith) {
  EXPECT_EQ(error_of("{{ 12345678901234567890 + 1 }}"), "t:1: an integer is too large");
  EXPECT_EQ(error_of("{{ 2 * 12345678901234567890 }}"), "t:1: an integer is too large");
  EXPECT_EQ(
      Template("{{ x }} {{ x | tojson }} {{ -x }}", "t")
          .render(from_json(parse_json("{\"x\": 340282366920938463463374607431768211456}", "x"))),
      "340282366920938463463374607431768211456 340282366920938463463374607431768211456 "
      "-340282366920938463463374607431768211456");
}

// Found with sanitizers: the values and scopes of a template can refer to themselves.
TEST(Jinja, ValuesThatHoldThemselvesAreFreed) {
  for (const char* source : {"{% set ns = namespace() %}{% set ns.x = [ns] %}",
                             "{% macro m() %}{{ caller() }}{% endmacro %}"
                             "{% call m() %}{% set f = caller %}{% endcall %}",
                             "{% for i in [1] %}{{ loop.changed(loop) }}{% endfor %}",
                             "{% macro m() %}{% endmacro %}{{ 1 // 0 }}"}) {
    std::weak_ptr<Object> object;
    auto held = std::make_shared<Namespace>();
    object = held;
    Dict variables;
    variables.set("held", std::static_pointer_cast<Object>(held));
    const std::string keep = "{% macro k() %}{% set a = held %}{% endmacro %}{% set b = held %}";
    try {
      Template(keep + source, "t").render(std::make_shared<const Dict>(std::move(variables)));
    } catch (const Error&) {
    }
    held = nullptr;
    EXPECT_TRUE(object.expired()) << source;
  }
}

TEST(Jinja, DeeplyNestedValues) {
  const std::string loop =
      "{% set ns = namespace(x=1, y=1) %}{% for i in range(100000) %}"
      "{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}";
  EXPECT_EQ(error_of(loop + "{% set ns.x = 1 %}"), "rendered");
  EXPECT_EQ(error_of(loop + "{{ ns.x == ns.y }}"), "t:1: values are nested too deeply");
  EXPECT_EQ(error_of(loop + "{{ [ns.x + [1]] < [ns.y] }}"), "t:1: values are nested too deeply");
  EXPECT_EQ(error_of("{% set ns = namespace(x=1) %}{% for i in range(100000) %}"
                     "{% set ns.x = namespace(x=ns.x, y={'a': ns.x}.items) %}{% endfor %}"),
            "rendered");
  EXPECT_EQ(error_of("{% set ns = namespace(f=1) %}"
                     "{% macro m(f) %}{% macro g() %}{% endmacro %}{% set ns.f = g %}{% endmacro %}"
                     "{% for i in range(100000) %}{{ m(ns.f) }}{% endfor %}{% set ns.f = 1 %}"),
            "rendered");
  EXPECT_EQ(error_of("{% set ns = namespace(c=1) %}{% for i in range(100000) %}"
                     "{% set ns.c = cycler(ns.c) %}{% endfor %}"),
            "rendered");
}

TEST(Jinja, LoopsThatHaveEnded) {
  const Template kept(
      "{% set ns = namespace() %}{% for i in [1, 2, 3] %}{% set ns.l = loop %}"
      "{% set ns.c = loop.changed %}{% endfor %}{% for i in [1] %}{% set ns.l = loop %}{% endfor %}"
      "{{ ns.c(1) }} {{ ns.c(1) }} {{ ns.l.previtem is defined }}",
      "t");
  EXPECT_EQ(kept.render(Value()), "True False False");
  const Template previous(
      "{% set ns = namespace() %}{% for i in [1, 2, 3] %}{% set ns.l = loop %}{% endfor %}"
      "{{ ns.l.previtem is defined }}",
      "t");
  EXPECT_EQ(previous.render(Value()), "False");
}

TEST(Jinja, TheLeastIntegerHasNoNegative) {
  const std::string set = "{% set n = -9223372036854775807 - 1 %}";
  const std::string error = error_of(set + "{{ -n }}");
  EXPECT_NE(error.find("t:1: "), error.npos) << error;
  EXPECT_EQ(error_of(set + "{{ n | abs }}"), error);
}

TEST(Jinja, FormattedNumbersAreWholeOrRejected) {
  EXPECT_EQ(Template("{{ '%.3f %d' % (1e9, 2.9) }}", "t").render(Value::list({})),
            "1000000000.000 2");
  EXPECT_NE(error_of("{{ '%.300f' % 1e308 }}").find("more than 511 characters"), std::string::npos);
  EXPECT_NE(error_of("{{ '%d' % 1e300 }}").find("%d does not format"), std::string::npos);
}

TEST(Jinja, TimeIsFormatted) {
  Template clock("{{ strftime_now('%d %b %Y') }}", "t");
  clock.now = std::tm{};
  clock.now->tm_year = 124, clock.now->tm_mon = 6, clock.now->tm_mday = 26;
  EXPECT_EQ(clock.render(Value()), "26 Jul 2024");
}

TEST(Jinja, AConversationNeedsMessages) {
  const Template chat("{% for m in messages %}{{ m.role }}{% endfor %}{{ tools is none }}", "t");
  EXPECT_EQ(tokenizers::render_chat(chat, parse_json(R"({"messages": [{"role": "user"}]})", "m"),
                                    nullptr),
            "userTrue");
  EXPECT_THROW(tokenizers::render_chat(chat, parse_json("[]", "m"), nullptr), Error);
}

}  // namespace
}  // namespace paddle::jinja
