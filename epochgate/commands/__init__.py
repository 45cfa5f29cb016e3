"""The commands of the command line, one module each; `epochgate.cli.COMMANDS` lists them."""
