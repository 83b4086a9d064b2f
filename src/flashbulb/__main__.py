from flashbulb.cli.main import main

main()
