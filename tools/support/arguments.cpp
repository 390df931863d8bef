#include "arguments.hpp"

#include <getopt.h>

#include <charconv>
#include <system_error>
#include <utility>

namespace tool {
namespace {

// getopt_long() goes by numbers. Those of flags and options are above what a character can be.
constexpr int first_number = 256;

// As getopt_long() wants it.
struct Table {
  std::vector<option> entries;
  std::string letters;             // of flags such as -h
  std::vector<std::string> names;  // by number

  explicit Table(const Syntax& syntax) : letters("-:") {  // positional arguments in their order, and no messages
    auto add = [&](const std::vector<std::string>& all, int argument) {
      for (const std::string& name : all) {
        if (name.rfind("--", 0) == 0) {
          entries.push_back({name.c_str() + 2, argument, nullptr, first_number + static_cast<int>(names.size())});
          names.push_back(name);
        } else {
          letters += name.substr(1) + (argument == required_argument ? ":" : "");
        }
      }
    };
    add(syntax.flags, no_argument);
    add(syntax.options, required_argument);
    entries.push_back({nullptr, 0, nullptr, 0});
  }

  std::string name(int number) const {
    if (number >= first_number) return names[static_cast<std::size_t>(number - first_number)];
    return std::string("-") + static_cast<char>(number);
  }
};

}  // namespace

std::string Parsed::option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::string() : found->second;
}

Parsed parse(const Arguments& arguments, const Syntax& syntax) {
  Parsed parsed;
  auto fail = [&](std::string problem) {
    parsed.problem = std::move(problem);
    return parsed;
  };
  const Table table(syntax);
  std::vector<std::string> words = arguments;
  std::string program;
  std::vector<char*> argv{program.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int argc = static_cast<int>(argv.size()) - 1;

  optind = 0;  // begin anew, also inside a word
  for (;;) {
    const int at = optind == 0 ? 1 : optind;
    const int number = getopt_long(argc, argv.data(), table.letters.c_str(), table.entries.data(), nullptr);
    if (number == -1) break;
    if (number == 1) {
      parsed.positional.emplace_back(optarg);
    } else if (number == ':') {
      return fail(table.name(optopt) + " needs a value");
    } else if (number == '?') {
      // A flag that was given a value has its number; what is not known has none, or is a letter.
      if (optopt >= first_number) return fail(table.name(optopt) + " takes no value");
      const std::string word = argv[static_cast<std::size_t>(at)];
      return fail("unknown option " + word.substr(0, word.find('=')));
    } else if (optarg != nullptr) {
      parsed.options[table.name(number)] = optarg;
    } else {
      parsed.flags.insert(table.name(number));
    }
  }
  for (int i = optind; i < argc; ++i) parsed.positional.emplace_back(argv[static_cast<std::size_t>(i)]);

  const std::size_t got = parsed.positional.size();
  const std::size_t wanted = syntax.positional.value_or(got);
  if (got > wanted) return fail("unexpected argument \"" + parsed.positional[wanted] + "\"");
  if (got < wanted) return fail("expected " + std::to_string(wanted) + " arguments, got " + std::to_string(got));
  return parsed;
}

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace tool
