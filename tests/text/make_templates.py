"""Writes templates with what Python's jinja2 renders in transformers' environment: make_templates.py FILE

Needs the Python packages jinja2 and transformers. tests/text/data/templates.jsonl comes from it: each
line has a template, its variables, and the text, or null where jinja2 rejects.
"""

import json
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "  Hello, <world> & 'all' \"é\"\n"},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1, "y": [1.5, True, None], "z": "q'"}}}]},
    {"role": "tool", "content": [{"type": "text", "text": "T"}]},
]
VARIABLES = {"messages": MESSAGES, "tools": None, "n": 7, "f": 2.5, "s": "The quick brown fox", "empty": "", "l": [3, 1, 2], "d": {"b": 1, "a": {"k": "v"}, "C": None}, "t": True,
             "bos_token": "<s>", "add_generation_prompt": True, "words": ["pear", "Apple", "fig", "apple"], "uni": "straße ÀÉ 日本語"}

CHATML = """{%- for message in messages -%}
    {%- if loop.first and message.role != 'system' -%}<|system|>{%- endif -%}
    {{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') | trim + '<|im_end|>' + '\\n' }}
{%- endfor -%}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""

TOOLS = """{%- macro type_of(p) -%}
  {%- if p is mapping -%}object{%- elif p is string -%}string{%- elif p is number -%}number{%- else -%}other{%- endif -%}
{%- endmacro -%}
{%- set ns = namespace(found=false, last=-1) -%}
{%- for m in messages %}
  {%- if m.tool_calls is defined and m.tool_calls %}
    {%- set ns.found = true %}
    {%- set ns.last = loop.index0 %}
    {%- for c in m.tool_calls %}
{"name": {{ c.function.name | tojson }}, "arguments": {{ c.function.arguments | tojson(indent=2) }}}
      {%- for k, v in c.function.arguments | items %}
 {{ k }}={{ type_of(v) }}
      {%- endfor %}
    {%- endfor %}
  {%- endif %}
{%- endfor %}
{{ ns.found }} {{ ns.last }}"""

TEMPLATES = [CHATML, TOOLS] + """\
{{ range(7) | slice(3) | list }} {{ l | slice(2, 'x') | list }} {{ [] | slice(2) | list }} {{ l | slice(5, fill_with=0) | list }}
{{ l | slice(0) | list }}
{{ 1 | filesizeformat }} {{ 0 | filesizeformat }} {{ 999 | filesizeformat }} {{ 1000 | filesizeformat }} {{ 1234567 | filesizeformat }} {{ 1024 | filesizeformat(true) }} {{ 123456789012 | filesizeformat(binary=true) }} {{ 1e30 | filesizeformat }}
{{ s | wordwrap(10) }}|{{ s | wordwrap(3) }}|{{ s | wordwrap(3, false) }}|{{ 'supercalifragilistic-expialidocious words' | wordwrap(12) }}|{{ 'a b  c\\td   e' | wordwrap(4, wrapstring='<br>') }}
{{ 'well-known e-mail x--y the "end"--of it a-b-c-d 12-34 trans-atlantic' | wordwrap(7) }}|{{ 'well-known trans-atlantic' | wordwrap(6, break_on_hyphens=false) }}|{{ '  lead\\n\\nand  more words\\n' | wordwrap(6) }}|{{ uni | wordwrap(5) }}
{{ '<p>a &amp; b  <!-- c > d --> <b>e</b>\\n &lt;f&gt; &#65;&#x42; 1 < 2' | striptags }}|{{ 'x<y' | striptags }}|{{ 'no<!-- end' | striptags }}
{{ {'a': 1, 'b': none, 'c': 'x"<', 'd': true} | xmlattr }}|{{ {} | xmlattr }}|{{ {'a': 1} | xmlattr(false) }}
{{ {'a b': 1} | xmlattr }}
{{ n + 1 }} {{ n - 9 }} {{ n * f }} {{ n / 2 }} {{ n // 2 }} {{ -n // 2 }} {{ n % 4 }} {{ -n % 4 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 1e16 }} {{ 1e-5 }} {{ 10 / 5 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' in 'cat' }} {{ 'x' not in l }} {{ 3 in l }} {{ 'a' in d }} {{ not t }} {{ not t == false }}
{{ 'a' ~ 1 ~ none ~ 1.0 ~ true }} {{ 'ab' * 3 }} {{ [1, 2] + [3] }} {{ (1,) + (2, 3) }} {{ 'a' 'b' }}
{{ l }} {{ d }} {{ (1, 'a', none) }} {{ ["it's", 'say "x"', "both ' and \\"", "tab\\t\\n\\\\"] }} {{ [] }} {{ {} }} {{ {'a': 1, 2: [true, 1.5]} }}
{{ l[0] }} {{ l[-1] }} {{ l[1:] }} {{ l[::-1] }} {{ s[:3] }} {{ s[-3:] }} {{ s[::5] }} {{ uni[1] }} {{ uni[4:8] }} {{ l[5] }} {{ d['a']['k'] }} {{ d.a.k }} {{ messages[0].role }} {{ l.0 }}
{{ undefined_name }}|{{ d.missing }}|{{ d.missing is defined }}|{{ undefined_name is not defined }}|{{ d['C'] is none }}
{{ undefined_name.attribute }}
{{ undefined_name + 1 }}
{{ d.missing.more }}
{{ 'a' + 1 }}
{{ 1 / 0 }}
{{ l.append(1) }}
{{ d.update({'a': 1}) }}
{{ s.nothing() }}
{{ 'yes' if t else 'no' }} {{ 'yes' if not t }}| {{ 'a' if false else 'b' if false else 'c' }}
{{ s | upper }} {{ s | lower }} {{ s | title }} {{ 'hELLO wORLD' | capitalize }} {{ uni | upper }} {{ '  x ' | trim }}| {{ 'xxaxx' | trim('x') }}
{{ l | sort }} {{ l | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ l | first }} {{ l | last }} {{ l | length }} {{ s | length }} {{ uni | length }} {{ l | sum }} {{ l | max }} {{ l | min }}
{{ words | unique | list }} {{ l | reverse | list }} {{ 'abc' | reverse }} {{ l | join(', ') }} {{ messages | map(attribute='role') | join('|') }} {{ words | map('upper') | list }} {{ s | list }}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ l | select('odd') | list }} {{ l | reject('gt', 1) | list }} {{ messages | rejectattr('content') | map(attribute='role') | list }}
{{ l | map('string') | length }}
{{ l | select('odd') | tojson }}
{{ 'gen' if l | select('gt', 100) else 'empty' }}
{{ d | dictsort }} {{ d | dictsort(reverse=true) }} {{ d | items | list }} {{ d.items() | list }} {{ d.keys() | list }} {{ d | list }} {{ d | length }}
{{ missing | default('x') }} {{ '' | default('x') }} {{ '' | default('x', true) }} {{ none | default('y') }} {{ missing | d }}|
{{ '42' | int + 1 }} {{ 'x' | int }} {{ 'x' | int(5) }} {{ 3.9 | int }} {{ '1.5' | float }} {{ 2.567 | round(1) }} {{ 2.5 | round }} {{ 2.1 | round(method='ceil') }} {{ -3 | abs }}
{{ messages | tojson }}
{{ d | tojson(indent=4) }}
{{ d | tojson(sort_keys=true) }} {{ d | tojson(separators=(',', ':')) }} {{ uni | tojson(ensure_ascii=true) }} {{ 1.0 | tojson }} {{ 'a\\u0001/\\u007f' | tojson }}
{{ '<a href="x">' | escape }} {{ '<b>' | safe }} {{ 'a b&c' | urlencode }} {{ s | wordcount }} {{ s | replace('quick', 'slow') }} {{ 'aaa' | replace('a', 'b', 2) }}
{{ 'a\\nb\\n\\nc' | indent }}| {{ 'a\\nb' | indent(2, true) }}| {{ 'a\\n\\nb' | indent(2, false, true) }}| {{ 'a' | center(6) }}|
{{ [1, 2, 3, 4, 5] | batch(2) | list }} {{ [1, 2, 3] | batch(2, 0) | list }} {{ messages | groupby('role') | map('first') | list }} {{ '%s is %d and %.2f' | format('x', 3, 1.5) }} {{ '%5d|%-5d|%05d' % (1, 2, 3) }}
{{ s.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b '.split() }} {{ 'a\\nb\\r\\nc'.splitlines() }} {{ 'k=v'.partition('=') }} {{ 'a.b.c'.rpartition('.') }}
{{ s.startswith('The') }} {{ s.endswith(('ox', 'x')) }} {{ s.find('q') }} {{ s.find('z') }} {{ s.count('o') }} {{ 'xxabxx'.strip('x') }} {{ 'xxab'.lstrip('x') }} {{ ' a '.rstrip() }}| {{ 'a-b'.replace('-', '+') }} {{ 'pre_x'.removeprefix('pre_') }} {{ '-'.join(['a', 'b']) }} {{ '{} {1} {0}'.format('a', 'b') if false else '{}-{}'.format(1, 'b') }} {{ '{x}'.format(x=3) }} {{ '7'.zfill(3) }} {{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '.') }}
{{ '12'.isdigit() }} {{ 'ab1'.isalpha() }} {{ 'ab1'.isalnum() }} {{ ' '.isspace() }} {{ 'AB'.isupper() }} {{ d.get('b') }} {{ d.get('z') }} {{ d.get('z', 9) }} {{ l.index(1) }} {{ l.count(3) }}
{{ n is number }} {{ f is float }} {{ n is integer }} {{ t is boolean }} {{ t is true }} {{ t is number }} {{ s is string }} {{ d is mapping }} {{ l is sequence }} {{ l is iterable }} {{ s is iterable }} {{ n is iterable }} {{ none is none }} {{ range is callable }} {{ n is odd }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }} {{ 3 is in l }} {{ 3 is in(l) }} {{ 'a' is lower }} {{ n is eq 7 }} {{ n is gt(3) and t }} {{ n is not none and n is defined }} {{ 1 is sameas 1 }}
{% for x in l %}{{ loop.index }}/{{ loop.length }}:{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}
{% for x in l if x > 1 %}{{ loop.index0 }}{{ x }}{{ loop.previtem }}{{ loop.nextitem }};{% else %}none{% endfor %}
{% for x in [] %}x{% else %}none{% endfor %} {% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %} {% for c in 'añb' %}{{ c }}.{% endfor %} {% for k in d %}{{ k }}{% endfor %}
{% for x in range(10) %}{% if x == 3 %}{% continue %}{% endif %}{% if x > 5 %}{% break %}{% endif %}{{ x }}{% endfor %} {{ range(5) | list }} {{ range(5, 1, -2) | list }}
{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.depth }}{% for y in l %}{{ loop.depth0 }}{% endfor %}{% endfor %}
{% for x in [1, [2, [3]]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}
{% for x in [1, 1, 2] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}
{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }} {% if true %}{% set x = 9 %}{% endif %}{{ x }} {% set a, b = 1, [2] %}{{ a }}{{ b }}
{% set ns = namespace(a=1) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }} {% set ns.b = 'x' %}{{ ns.b }} {{ ns.c is defined }}
{% set d.b = 2 %}
{% set x %}a{{ n }}b{% endset %}[{{ x }}] {% set y | upper %}abc{% endset %}{{ y }}
{% macro m(a, b=2, *rest) %}x{% endmacro %}
{% macro m(a, b=2) %}[{{ a }}{{ b }}{{ varargs }}{{ kwargs }}]{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m(1, 2, 3, 4, x=5) }} {{ m() }}
{% macro outer() %}<{{ caller('x') }}>{% endmacro %}{% call(v) outer() %}in {{ v }}{{ n }}{% endcall %}
{% macro fact(k) %}{% if k <= 1 %}1{% else %}{{ k * fact(k - 1) | int }}{% endif %}{% endmacro %}{{ fact(5) }}
{% filter upper %}abc {{ s }}{% endfilter %} {% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }} {% raw %}{{ not }} {% x %}{% endraw %} {# comment {{ x }} #}| {% generation %}g{% endgeneration %}
{{ dict(a=1, b=[2]) }}
{% set j = joiner(', ') %}{{ j() }}a{{ j() }}b {% set c = cycler('x', 'y') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}
{{ raise_exception('rejected') }}
{% if n > 5 and (f < 3 or missing) %}yes{% elif n %}mid{% else %}no{% endif %} {% if missing %}m{% elif not empty %}e{% endif %}
{{ "é\\u00e9\\x41\\n\\t\\\\\\"'" }} {{ 'a\\qb' }} {{ 1_000 }} {{ true and none }} {{ 0 or 'x' }} {{ [] or {} }}
{% if x %}
{{ unclosed
{% for x in l %}
{% endfor %}
{% unknown %}
{{ n | nofilter }}
{{ n is notest }}
{{ 'a' if }}
{{ [1, 2 }}
{{ {'a' 1} }}
{% set %}
{{ 1 ~ }}
{% for in l %}{% endfor %}
{{ 'abc'[1:2:0] }}
{{ range(1000000) }}
{{ l | first.x }}
{% break %}
{{ messages[1].content | trim | tojson }} {{ messages[2].tool_calls[0].function.arguments | string }} {{ messages[3].content[0]['text'] }}""".split("\n")

MORE = """\
{{ none | selectattr("type", "equalto", "x") | list | length }}{{ none | map("upper") | list }} {{ 0 | select | list }} {{ '' | reject | list }} {{ missing | rejectattr('a') | list }} {{ false | map(attribute='x') | list }}{% for x in none | select %}x{% endfor %}
{{ none | list }}
{{ none | join }}
{{ [{'n': 'b', 'a': 2}, {'n': 'C', 'a': 1}, {'n': 'a', 'a': 2}] | sort(attribute='a,n') | map(attribute='n') | join }} {{ [{'n': 'b', 'a': 2}, {'n': 'C', 'a': 1}, {'n': 'a', 'a': 2}] | sort(attribute='a,n', reverse=true) | map(attribute='n') | join }} {{ [{'k': {'v': 2}, 'n': 'A'}, {'k': {'v': 1}, 'n': 'a'}, {'k': {'v': 1}, 'n': 'B'}] | sort(attribute='k.v,n') | map(attribute='n') | join }} {{ [[1, 'b'], [1, 'a']] | sort(attribute='0,1') }} {{ [{'n': 'b'}, {'n': 'A'}] | sort(true, true, 'n') }}
{% for key, items in [{'k': 1, 'n': 'a'}, {'n': 'b'}, {'k': 1, 'n': 'c'}] | groupby('k', default=0) %}{{ key }}:{{ items | map(attribute='n') | join }};{% endfor %}
{{ 12345678901234567890 }} {{ 12345678901234567890 | tojson }} {{ -12345678901234567890 }} {{ [18446744073709551616, 9223372036854775808] }} {{ 12345678901234567890 > 9223372036854775807 }} {{ 12345678901234567890 == 12345678901234567891 }} {{ 9999999999999999999 }} {{ '12345678901234567890' | int }} {{ '%d' % 12345678901234567890 }} {{ 12345678901234567890 is integer }} {{ 12345678901234567891 is odd }} {{ -9223372036854775808 }} {{ -12345678901234567890 < 3 }} {{ 12345678901234567890 < 1e30 }} {{ 9223372036854775808 == 9223372036854775808.0 }} {{ -12345678901234567890 | abs }}
{{ '%5.1f|%-8d|%+d|%08.3f|%x|%X|%#x|% d|%e|%G|%%|%s|%r' % (2.25, 7, 7, 3.14159, 255, 255, 255, 5, 12345.678, 1e-9, 'é', 'it') }} {{ '%d' | format(3) }} {{ '%.0f' % 2.5 }} {{ '%i' % 2.9 }}
{{ 'a' | center(7) }}|{{ 'ab' | center(7) }}|{{ 'ab'.center(6, '*') }}|{{ 'x'.ljust(-3) }}|{{ '-5'.zfill(4) }}|{{ 'aXbXc'.split('X', 1) }} {{ ' a  b '.split() }} {{ 'a b c'.split(none, 1) }} {{ 'a\\nb\\r\\nc'.splitlines() }} {{ 'a\\nb\\n'.splitlines(true) }} {{ 'banana'.count('an') }} {{ 'abc' | reverse }} {{ 'aaa'.replace('', '-') }} {{ 'aaa' | replace('a', 'bb', 2) }}
{{ 'one two three four' | truncate(9, true, '…', 0) }}|{{ 'one two three four' | truncate(9, false, '…', 0) }}
{{ 5 | truncate }}
{{ ['a', ['b', {'c': none}]] | string }} {{ {'a': [1, 2.0, true]} | tojson(indent=1) }} {{ [1, [2]] == [1, [2]] }} {{ {'a': [1]} == {'a': [1]} }} {{ (1, [2]) in [(1, [2])] }} {{ 'b' in ['a', 'b'] }} {{ [3, 1] < [3, 2] }}""".split("\n")

SPACES = [
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a  {%- if true -%}  b  {%- endif -%}  c", "{{ 1 }}\n{{ 2 }}\n", "  {{ 1 }}  \n  {{- 2 -}}  \n 3", "\n\n{% set x = 1 %}\n\n{{ x }}",
    "a {# c #}\nb\n  {# c #}\nd", "  {%+ if true %}x{% endif +%}\ny", "x {% if true %}y{% endif %} z", "{% raw %}\n {{ a }}\n{% endraw %}\nb", "a\r\nb\r{% if true %}\r\nc{% endif %}\r\n",
    "{%- for i in l %}\n    {{- i }},\n{%- endfor %}\n", "\t{% if true %}\t\nx\t{% endif %}\t\n", "a\n{%- if true %}\nb\n{%- endif %}\n\n", "{% if true -%}\n\n  x\n{%- endif %}\n", "text only\n\n", "{{ 'a' }}{# x -#}  b", "a  {#- x #}b", "{%-raw-%} x {%-endraw-%} y", "{{'%}'}} {% set a = '{{' %}{{ a }}",
]


def main():
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for template in TEMPLATES + SPACES + MORE:
            try:
                text = _compile_jinja_template(template).render(**VARIABLES)
            except Exception:
                text = None
            print(json.dumps({"template": template, "text": text}), file=out)
    with open(sys.argv[1].replace(".jsonl", "_variables.json"), "w", encoding="ascii") as out:
        json.dump(VARIABLES, out)


main()
