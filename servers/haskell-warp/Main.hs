{-# LANGUAGE OverloadedStrings #-}
-- The post's dynamic answer, and "Hello, world" in the experiments that ask for it, by Warp.
--
-- warp-server EXPERIMENT HOST PORT BACKLOG
module Main (main) where

import Control.Monad (join)
import Data.ByteString (ByteString)
import qualified Data.ByteString.Char8 as B
import qualified Data.ByteString.Lazy as BL
import Network.HTTP.Types (hContentLength, hContentType, status200)
import Network.Socket
import Network.Wai
import Network.Wai.Handler.Warp
import System.Environment (getArgs)

dynamic :: Application
dynamic request respond =
  respond . answer "text/xml" . body . join . lookup "value" $ queryString request
  where
    body (Just value) | not (B.null value) =
      B.concat ["<http_test><value>", B.concatMap escape value, "</value></http_test>"]
    body _ = "<http_test><error>no value specified</error></http_test>"

hello :: Application
hello _ respond = respond (answer "text/plain" "Hello, world")

escape :: Char -> ByteString
escape '&' = "&amp;"
escape '<' = "&lt;"
escape '>' = "&gt;"
escape other = B.singleton other

-- Without a length Warp sends an answer in chunks.
answer :: ByteString -> ByteString -> Response
answer kind body = responseLBS status200 headers (BL.fromStrict body)
  where
    headers = [(hContentType, kind), (hContentLength, B.pack (show (B.length body)))]

listening :: String -> String -> Int -> IO Socket
listening host port backlog = do
  address : _ <- getAddrInfo (Just defaultHints {addrSocketType = Stream}) (Just host) (Just port)
  listener <- openSocket address
  setSocketOption listener ReuseAddr 1
  setSocketOption listener NoDelay 1
  bind listener (addrAddress address)
  listen listener backlog
  return listener

main :: IO ()
main = do
  [experiment, host, port, backlog] <- getArgs
  listener <- listening host port (read backlog)
  runSettingsSocket defaultSettings listener (if experiment == "dynamic" then dynamic else hello)
