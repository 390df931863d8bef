# Bash completion for the brontes command.
_brontes() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} choices='' files=''
  local commands='bench cache check demo devices explain info kernels plan profile run trace tune version'
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    choices="$commands help --help --version"
  elif [[ ${COMP_WORDS[1]} == help ]]; then
    choices=$commands
  else
    case $previous in
      --layout) choices='kn nk' ;;
      --format) choices='text dot json' ;;
      --output) files=yes ;;
      --device | --every | --gbytes | --gflops | --runs | --seconds) return ;;
      *)
        case ${COMP_WORDS[1]} in
          bench) choices='--help' ;;
          cache) choices='--device --json --help' ;;
          check) choices='--device --every --json --help' files=yes ;;
          demo) choices='--device --help' ;;
          devices | info) choices='--device --json --help' ;;
          explain) choices='--device --json --layout --help' ;;
          kernels) choices='--compiled --device --isa --json --help' ;;
          version) choices='--json --help' ;;
          plan) choices='--device --format --json --recorded --help' files=yes ;;
          profile) choices='--all --device --gbytes --gflops --json --no-limits --runs --help' files=yes ;;
          run) choices='--device --json --help' files=yes ;;
          trace) choices='--device --output --runs --help' files=yes ;;
          tune) choices='--device --json --quick --seconds --help' ;;
        esac
        [[ ${COMP_WORDS[1]} == cache && $word != -* && $COMP_CWORD == 2 && -n $word ]] && choices='show clear'
        ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
  if [[ -n $files && -n $word && $word != -* ]]; then
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _brontes brontes
