from flashbulb.cli import main

main()
