#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "common_describe.h"

namespace paddle::cli {
namespace {

/// A command and the words that lead to it below `paddle`: {"op", "check"}.
struct Entry {
  std::vector<std::string> path;
  const CommandDescription* command;
};

std::string short_name(const std::string& program) {
  return program.starts_with("paddle-") ? program.substr(7) : program;
}

/// Single quotes for POSIX shells; `escaped_quote` stands for a quote in the text.
std::string shell_quoted(const std::string& text, const std::string& escaped_quote = "'\\''") {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += escaped_quote;
    else
      out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::vector<Entry> entries_of(const CommandDescription& umbrella,
                              const std::vector<CommandDescription>& programs) {
  std::vector<Entry> out = {{{}, &umbrella}};
  const std::function<void(std::vector<std::string>, const CommandDescription&)> add =
      [&](std::vector<std::string> path, const CommandDescription& command) {
        out.push_back({path, &command});
        for (const CommandDescription& sub : command.commands) {
          std::vector<std::string> below = path;
          below.push_back(sub.name);
          add(std::move(below), sub);
        }
      };
  for (const CommandDescription& sub : umbrella.commands) add({sub.name}, sub);
  for (const CommandDescription& program : programs) add({short_name(program.name)}, program);
  return out;
}

/// The commands of an entry; those of the umbrella are its own and the programs.
std::vector<std::pair<std::string, std::string>> commands_of(
    const Entry& e, const std::vector<CommandDescription>& programs) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const CommandDescription& c : e.command->commands) out.emplace_back(c.name, c.summary);
  if (e.path.empty())
    for (const CommandDescription& p : programs) out.emplace_back(short_name(p.name), p.summary);
  return out;
}

std::string program_names(const std::vector<CommandDescription>& programs) {
  std::string out = "paddle";
  for (const CommandDescription& p : programs) out += " " + p.name;
  return out;
}

std::vector<std::string> option_names(const Entry& e) {
  std::vector<std::string> out;
  for (const OptionDescription& o : e.command->options)
    out.insert(out.end(), o.names.begin(), o.names.end());
  return out;
}

/// The choices of the arguments of an entry: those of `paddle completion`.
std::vector<std::string> argument_choices(const Entry& e) {
  return e.path == std::vector<std::string>{"completion"}
             ? std::vector<std::string>{"bash", "zsh", "fish"}
             : std::vector<std::string>{};
}

/// `case` arms for the choices of options: `PATH OPTION) … ;;`.
std::string choice_arms(const std::vector<Entry>& entries, const std::string& before,
                        const std::string& after) {
  std::string out;
  for (const Entry& e : entries)
    for (const OptionDescription& o : e.command->options)
      for (const std::string& name : o.names)
        if (!o.choices.empty())
          out += str("    ", shell_quoted(join(e.path, " ") + " " + name), ") ", before,
                     join(o.choices, " "), after, " ;;\n");
  return out;
}

std::string value_options(const std::vector<Entry>& entries) {
  std::string out;
  for (const Entry& e : entries)
    for (const OptionDescription& o : e.command->options)
      for (const std::string& name : o.names)
        if (!o.value.empty() && o.choices.empty())
          out += str(out.empty() ? "    " : "|", shell_quoted(join(e.path, " ") + " " + name));
  return out;
}

std::string bash_script(const std::vector<Entry>& entries,
                        const std::vector<CommandDescription>& programs) {
  std::string options, commands;
  for (const Entry& e : entries) {
    const std::string arm = "    " + shell_quoted(join(e.path, " ")) + ") words=";
    options += arm + shell_quoted(join(option_names(e), " ")) + " ;;\n";
    std::vector<std::string> names = argument_choices(e);
    for (const auto& [name, summary] : commands_of(e, programs)) names.push_back(name);
    if (!names.empty()) commands += arm + shell_quoted(join(names, " ")) + " ;;\n";
  }
  return str(
      "# bash completion of the paddle tools; written by `paddle completion bash`.\n"
      "_paddle_options() {\n  words=''\n  case \"$1\" in\n",
      options, "  esac\n}\n_paddle_commands() {\n  words=''\n  case \"$1\" in\n", commands,
      "  esac\n}\n_paddle_choices() {\n  words=''\n  case \"$1\" in\n",
      choice_arms(entries, "words='", "'"), "    *) return 1 ;;\n  esac\n}\n",
      "_paddle_takes_value() {\n  case \"$1\" in\n", value_options(entries),
      ") return 0 ;;\n  esac\n  return 1\n}\n",
      R"(_paddle() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local words place i
  place="${COMP_WORDS[0]##*/}"
  place="${place#paddle}"
  place="${place#-}"
  for ((i = 1; i < COMP_CWORD; ++i)); do
    _paddle_commands "$place"
    case " $words " in
      *" ${COMP_WORDS[i]} "*) place="${place:+$place }${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  if _paddle_choices "$place $previous"; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  elif _paddle_takes_value "$place $previous"; then
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  elif [[ $current == -* ]]; then
    _paddle_options "$place"
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  else
    _paddle_commands "$place"
    if [[ -n $words ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    else
      compopt -o filenames 2> /dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
  fi
}
)",
      "complete -F _paddle ", program_names(programs), "\n");
}

/// "--output:run folder" for zsh's _describe.
std::string zsh_item(const std::string& name, const std::string& help) {
  std::string text;
  for (const char c : name + "\n" + help) {
    if (c == ':') text += '\\';
    text += c == '\n' ? (text.size() == name.size() ? ':' : ' ') : c;
  }
  return shell_quoted(text);
}

std::string zsh_script(const std::vector<Entry>& entries,
                       const std::vector<CommandDescription>& programs) {
  std::string options, commands;
  for (const Entry& e : entries) {
    const std::string arm = "    " + shell_quoted(join(e.path, " ")) + ") items=(";
    options += arm;
    for (const OptionDescription& o : e.command->options)
      for (const std::string& name : o.names) options += zsh_item(name, o.help) + " ";
    options += ") ;;\n";
    std::string items;
    for (const std::string& name : argument_choices(e)) items += shell_quoted(name) + " ";
    for (const auto& [name, summary] : commands_of(e, programs))
      items += zsh_item(name, summary) + " ";
    if (!items.empty()) commands += arm + items + ") ;;\n";
  }
  return str("#compdef ", program_names(programs),
             "\n# zsh completion of the paddle tools; written by `paddle completion zsh`.\n"
             "_paddle_options() {\n  items=()\n  case \"$1\" in\n",
             options, "  esac\n}\n_paddle_commands() {\n  items=()\n  case \"$1\" in\n", commands,
             "  esac\n}\n_paddle_choices() {\n  items=()\n  case \"$1\" in\n",
             choice_arms(entries, "items=(", ")"), "    *) return 1 ;;\n  esac\n}\n",
             "_paddle_takes_value() {\n  case \"$1\" in\n", value_options(entries),
             ") return 0 ;;\n  esac\n  return 1\n}\n",
             R"(_paddle() {
  local place="${words[1]:t}" i item
  local -a items
  place="${place#paddle}"
  place="${place#-}"
  for ((i = 2; i < CURRENT; ++i)); do
    _paddle_commands "$place"
    for item in "${items[@]}"; do
      if [[ "${item%%:*}" == "${words[i]}" ]]; then
        place="${place:+$place }${words[i]}"
        break
      fi
    done
  done
  if _paddle_choices "$place ${words[CURRENT-1]}"; then
    _describe value items
  elif _paddle_takes_value "$place ${words[CURRENT-1]}"; then
    _files
  elif [[ "${words[CURRENT]}" == -* ]]; then
    _paddle_options "$place"
    _describe option items
  else
    _paddle_commands "$place"
    if (( ${#items} )); then
      _describe command items
    else
      _files
    fi
  fi
}
_paddle "$@"
)");
}

std::string fish_quoted(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return shell_quoted(escaped, "\\'");
}

/// The lines for one command; `condition` limits them to its part of the command line.
std::string fish_lines(const std::string& program, const std::string& condition, const Entry& e,
                       const std::vector<std::pair<std::string, std::string>>& commands) {
  const std::string head =
      "complete -c " + program + (condition.empty() ? "" : " -n " + shell_quoted(condition));
  std::string out;
  std::string seen;
  for (const auto& [name, summary] : commands) seen += " " + name;
  const std::string none = "not __fish_seen_subcommand_from" + seen;
  for (const auto& [name, summary] : commands)
    out += str("complete -c ", program, " -f -n ",
               shell_quoted(condition.empty() ? none : condition + "; and " + none), " -a ", name,
               " -d ", fish_quoted(summary), "\n");
  for (const std::string& choice : argument_choices(e)) out += head + " -f -a " + choice + "\n";
  for (const OptionDescription& o : e.command->options) {
    out += head;
    for (const std::string& name : o.names)
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!o.choices.empty())
      out += " -x -a " + shell_quoted(join(o.choices, " "));
    else if (!o.value.empty())
      out += " -r";
    out += " -d " + fish_quoted(o.help) + "\n";
  }
  return out;
}

std::string fish_script(const std::vector<Entry>& entries,
                        const std::vector<CommandDescription>& programs) {
  std::string out = "# fish completion of the paddle tools; written by `paddle completion fish`.\n";
  const auto condition = [](const std::vector<std::string>& path, size_t from) {
    std::vector<std::string> parts;
    for (size_t i = from; i < path.size(); ++i)
      parts.push_back("__fish_seen_subcommand_from " + path[i]);
    return join(parts, "; and ");
  };
  for (const Entry& e : entries) {
    const auto commands = commands_of(e, programs);
    out += fish_lines("paddle", condition(e.path, 0), e, commands);
    for (const CommandDescription& p : programs)
      if (!e.path.empty() && e.path[0] == short_name(p.name))
        out += fish_lines(p.name, condition(e.path, 1), e, commands);
  }
  return out;
}

}  // namespace

std::string completion_script(const std::string& shell, const CommandDescription& umbrella,
                              const std::vector<CommandDescription>& programs) {
  const std::vector<Entry> entries = entries_of(umbrella, programs);
  if (shell == "bash") return bash_script(entries, programs);
  if (shell == "zsh") return zsh_script(entries, programs);
  if (shell == "fish") return fish_script(entries, programs);
  fail(ErrorCode::kUsage, "completion: expected bash, zsh or fish, found '", shell, "'");
}

}  // namespace paddle::cli
