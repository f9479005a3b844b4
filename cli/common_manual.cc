#include "base/text.h"
#include "common_describe.h"

namespace paddle::cli {
namespace {

/// Text for troff: backslashes and leading dots are special, and `-` would become a hyphen.
std::string roff(const std::string& text) {
  std::string out;
  if (!text.empty() && (text[0] == '.' || text[0] == '\'')) out = "\\&";
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\n')
      out += "\n.br\n";
    else
      out += c;
  }
  return out;
}

std::string synopsis(const std::string& name, const CommandDescription& c) {
  std::string out = ".B " + roff(name) + "\n";
  if (!c.options.empty()) out += "[\\fIOPTIONS\\fR]\n";
  for (const ArgumentDescription& a : c.arguments)
    out += str(a.required ? "" : "[", "\\fI", roff(a.name), "\\fR", a.required ? "" : "]",
               a.repeated ? "..." : "", "\n");
  if (!c.commands.empty()) out += "\\fICOMMAND\\fR ...\n";
  return out;
}

std::string details(const CommandDescription& c) {
  std::string out;
  for (const ArgumentDescription& a : c.arguments)
    out += str(".TP\n\\fI", roff(a.name), "\\fR\n", roff(a.help), "\n");
  for (const OptionDescription& o : c.options) {
    std::vector<std::string> names;
    for (const std::string& name : o.names) names.push_back("\\fB" + roff(name) + "\\fR");
    out += ".TP\n" + join(names, ", ");
    if (!o.choices.empty())
      out += " " + roff(join(o.choices, "|"));
    else if (!o.value.empty())
      out += " \\fI" + roff(o.value) + "\\fR";
    out += "\n" + roff(o.help) + "\n";
  }
  return out;
}

}  // namespace

std::string manual_page(const CommandDescription& c) {
  std::string heading = c.name;
  for (char& letter : heading) letter = static_cast<char>(std::toupper(letter));
  std::string summary = c.summary;
  if (summary.ends_with('.')) summary.pop_back();
  std::string out = str(".TH \"", roff(heading), "\" 1 \"\" \"paddle ", PADDLE_VERSION,
                        "\" \"User commands\"\n.SH NAME\n", roff(c.name), " \\- ", roff(summary),
                        "\n.SH SYNOPSIS\n", synopsis(c.name, c));
  if (!c.footer.empty()) out += ".SH DESCRIPTION\n" + roff(c.footer) + "\n";
  out += ".SH OPTIONS\n" + details(c);
  if (!c.commands.empty()) {
    out += ".SH COMMANDS\n";
    for (const CommandDescription& sub : c.commands)
      out += str(".SS ", roff(sub.name), "\n", roff(sub.summary), "\n.PP\n",
                 synopsis(c.name + " " + sub.name, sub), details(sub));
  }
  out +=
      ".SH EXIT STATUS\n"
      "0: done. 1: a check found differences. 2: wrong command line. 3: wrong configuration. "
      "4: wrong data. 5: wrong model or weights. 6: device, memory or disk. 7: another rank was "
      "lost. 70: a bug. 128 + N: ended by signal N. 141: the reader of the output has closed the "
      "pipe.\n"
      ".SH ENVIRONMENT\n"
      ".TP\n.B PADDLE_CACHE_DIR\nfolder for compiled operations; empty: none are kept\n"
      ".TP\n.B PADDLE_CODEGEN_MODULE\nthe code generator, if it is not in the folder of the "
      "libraries\n"
      ".TP\n.B PADDLE_MAX_ISA\nlargest instruction set that is used: sse4, avx2 or avx512\n"
      ".TP\n.B PADDLE_TEST_DATA\nthe folder that data:// means\n"
      ".TP\n.B PADDLE_TRANSPORT\nhow ranks exchange messages: auto, tcp, gloo or mpi\n";
  if (c.name != "paddle") out += ".SH SEE ALSO\n.BR paddle (1)\n";
  return out;
}

}  // namespace paddle::cli
