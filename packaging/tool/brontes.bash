# Bash completion for the brontes command.
_brontes() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} choices=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    choices='demo devices explain help tune version --help --version'
  elif [[ ${COMP_WORDS[1]} == help ]]; then
    choices='demo devices explain tune version'
  else
    case $previous in
      --layout) choices='kn nk' ;;
      --device | --seconds) return ;;
      *)
        case ${COMP_WORDS[1]} in
          demo | devices) choices='--device --help' ;;
          explain) choices='--device --layout --help' ;;
          tune) choices='--device --quick --seconds --help' ;;
          version) choices='--help' ;;
        esac
        ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -F _brontes brontes
