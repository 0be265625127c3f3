// SPDX-License-Identifier: Apache-2.0
#include "cel/regex.h"

#include <re2/re2.h>

#include <array>

#include "api/quote.h"
#include "cel/function.h"
#include "cel/utf8.h"

namespace devmgr::cel {
namespace {

constexpr std::size_t kMaxErrorBytes = 200;

re2::StringPiece Piece(std::string_view text) {
  return re2::StringPiece(text.data(), text.size());
}

/// Up to `limit` matches of `pattern`, found as Go finds them: an empty match
/// directly after another match does not count.
std::vector<Value> FindMatches(const re2::RE2& pattern, std::string_view text,
                               std::size_t limit, Work& work) {
  std::vector<Value> found;
  std::size_t at = 0;
  std::size_t last_end = std::string_view::npos;
  while (found.size() < limit && at <= text.size() && work.SpendOnValues(1)) {
    re2::StringPiece match;
    if (!pattern.Match(Piece(text), at, text.size(), RE2::UNANCHORED, &match,
                       1)) {
      break;
    }
    const auto begin = static_cast<std::size_t>(match.data() - text.data());
    const std::size_t end = begin + match.size();
    const bool accept = !match.empty() || begin != last_end;
    const std::size_t next =
        end < text.size() ? CharacterSize(text.substr(end)) : 1;
    at = end == at ? end + next : end;
    last_end = end;
    if (accept) found.push_back(Value::Text(std::string(match)));
  }
  return found;
}

Value FindAll(const re2::RE2& pattern, const Args& args) {
  std::size_t limit = args.Text(0).size() + 1;
  if (args.size() > 2 && args.As<std::int64_t>(2) >= 0) {
    limit = std::min(limit, static_cast<std::size_t>(args.As<std::int64_t>(2)));
  }
  return MakeList(args, FindMatches(pattern, args.Text(0), limit, args.work));
}

/// Calls a function whose pattern is not constant.
template <const std::string_view& kFunction>
Value Call(const Args& args) {
  const auto pattern = CompileRegex(args.Text(1));
  if (const auto* problem = std::get_if<std::string>(&pattern)) {
    return Value::Failed(*problem);
  }
  return CallWithPattern(kFunction, *std::get<Regex>(pattern), args);
}

constexpr std::string_view kMatches = "matches";
constexpr std::string_view kFind = "find";
constexpr std::string_view kFindAll = "findAll";

constexpr auto kRegexRows = std::to_array<FunctionRow>({
    {kMatches, "matches", "(string, string) -> bool", Call<kMatches>},
    {kMatches, "matches_string", "string.(string) -> bool", Call<kMatches>},
    {kFind, "string_find_string", "string.(string) -> string", Call<kFind>},
    {kFindAll, "string_find_all_string", "string.(string) -> list(string)",
     Call<kFindAll>},
    {kFindAll, "string_find_all_string_int",
     "string.(string, int) -> list(string)", Call<kFindAll>},
});

}  // namespace

std::variant<Regex, std::string> CompileRegex(std::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_shared<const RE2>(Piece(pattern), options);
  if (!regex->ok()) {
    // RE2 says what is wrong with parts of the pattern, as they are.
    return "invalid regular expression " + api::Quoted(pattern) + ": " +
           api::Readable(regex->error(), kMaxErrorBytes);
  }
  return Regex(std::move(regex));
}

bool TakesPattern(std::string_view function) {
  return function == kMatches || function == kFind || function == kFindAll;
}

Value CallWithPattern(std::string_view function, const re2::RE2& pattern,
                      const Args& args) {
  if (function == kMatches) {
    return Value::Bool(RE2::PartialMatch(Piece(args.Text(0)), pattern));
  }
  if (function == kFindAll) return FindAll(pattern, args);
  std::vector<Value> found = FindMatches(pattern, args.Text(0), 1, args.work);
  return found.empty() ? Value::Text("") : found[0];
}

std::span<const FunctionRow> RegexFunctions() { return kRegexRows; }

}  // namespace devmgr::cel
